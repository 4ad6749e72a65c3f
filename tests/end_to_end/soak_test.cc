// Mixed load for some time: turns, retries over a bad connection, cancelled
// ones, slow readers, bad requests, reconnecting clients. Nothing fails that
// was not provoked, nothing is left behind, and the last tenth of a long run is
// as fast as its first.
// TXL_SOAK_SECONDS: for how long.

#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/call_error.h"
#include "client/retrying_client.h"
#include "tests/end_to_end/cutting_proxy.h"
#include "tests/end_to_end/pace.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/stuck_reader.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

constexpr int kTurnsPerSession = 6;

absl::Duration SoakTime() {
  const char* seconds = std::getenv("TXL_SOAK_SECONDS");
  return absl::Seconds(seconds == nullptr ? 6 : std::atoi(seconds));
}

using Random = std::minstd_rand;

// What all kinds of clients share.
struct Load {
  ServerProcess& server;
  CuttingProxy& proxy;
  const absl::Time end;
  std::atomic<int64_t> turns{0};
  std::atomic<int64_t> cancelled{0};
  std::atomic<int64_t> too_slow{0};
  std::atomic<int64_t> refused{0};

  bool over() const {
    return absl::Now() > end || ::testing::Test::HasFailure();
  }
};

v1::GenerateRequest RandomTurn(Random& random, const std::string& session) {
  v1::GenerateRequest request =
      Greedy(session, RandomIds(random(), 1 + random() % 60, kVocabulary),
             static_cast<int32_t>(1 + random() % 80));
  if (random() % 2 == 0) {
    request.mutable_sampling()->set_temperature(1.2);
    request.mutable_sampling()->set_top_k(20);
  }
  if (random() % 8 == 0) request.mutable_output()->set_logprobs(5);
  return request;
}

void Delete(Client& client, const std::string& session) {
  v1::DeleteSessionRequest request;
  request.set_session_id(session);
  const auto response = client.DeleteSession(request);
  EXPECT_TRUE(response.ok()) << response.status();
}

// One session's life: `turn` is called with the session some times.
void InSessions(Load& load, const std::string& name,
                const std::function<void(Client&, const std::string&)>& turn) {
  for (int i = 0; !load.over(); ++i) {
    const std::unique_ptr<Client> client = load.server.NewClient();
    const std::string session = absl::StrCat(name, "-", i);
    CreateSession(*client, session);
    for (int t = 0; t < kTurnsPerSession && !load.over(); ++t) {
      turn(*client, session);
    }
    Delete(*client, session);
  }
}

void Talk(Load& load, const std::string& name, Random random) {
  InSessions(load, name, [&](Client& client, const std::string& session) {
    if (random() % 4 == 0) {
      const auto fed =
          Append(client, session, RandomIds(random(), 40, kVocabulary));
      EXPECT_TRUE(fed.ok()) << fed.status();
    } else if (random() % 4 == 0) {
      v1::ScoreRequest request;
      request.set_session_id(session);
      request.mutable_tokens()->add_ids(3);
      EXPECT_TRUE(client.Score(request).ok());
    } else {
      const TurnOutput turn = RunTurn(client, RandomTurn(random, session));
      EXPECT_TRUE(turn.status.ok()) << turn.status;
    }
    ++load.turns;
  });
}

void TalkOverABadConnection(Load& load, const std::string& name,
                            Random random) {
  ChannelOptions options;
  options.address = load.proxy.address();
  options.own_connection = true;
  const auto bad = *Client::Create(options);
  RetryPolicy policy;
  policy.max_failures = 1000;
  policy.first_delay = absl::Milliseconds(5);
  policy.max_delay = absl::Milliseconds(200);
  InSessions(load, name, [&](Client&, const std::string& session) {
    int64_t tokens = 0;
    const absl::Status status =
        RetryingClient(bad.get(), policy)
            .Generate(RandomTurn(random, session), {},
                      [&](const v1::GenerateResponse& response) {
                        if (!response.has_token()) return;
                        EXPECT_EQ(response.token().index(), tokens++);
                      });
    EXPECT_TRUE(status.ok()) << status;
    ++load.turns;
  });
}

void Cancel(Load& load, const std::string& name, Random random) {
  InSessions(load, name, [&](Client& client, const std::string& session) {
    Canceller canceller;
    const int64_t at = random() % 30;
    const TurnOutput turn =
        RunTurn(client, RandomTurn(random, session), {.canceller = &canceller},
                [&](int64_t tokens) {
                  if (tokens >= at) canceller.Cancel();
                });
    if (!turn.status.ok()) {
      EXPECT_EQ(turn.status.code(), absl::StatusCode::kCancelled)
          << turn.status;
      ++load.cancelled;
    }
    IdleSession(client, session);
  });
}

// Reads its first token, then for longer than the server allows nothing.
void ReadSlowly(Load& load, const std::string& name, Random random) {
  const auto stub = NarrowStub(load.server);
  InSessions(load, name, [&](Client& client, const std::string& session) {
    v1::GenerateRequest request = RandomTurn(random, session);
    request.mutable_stop()->set_max_tokens(4000);
    request.mutable_output()->set_logprobs(20);
    grpc::ClientContext context;
    const auto reader = stub->Generate(&context, request);
    v1::GenerateResponse response;
    while (reader->Read(&response)) {
      if (response.token().index() == 1) absl::SleepFor(absl::Seconds(4));
    }
    const absl::Status status = FromGrpcStatus(reader->Finish());
    if (!status.ok()) {
      // Where it went on reading too late for the rest, its call is cancelled.
      EXPECT_TRUE(GetCallError(status).reason == "CLIENT_TOO_SLOW" ||
                  status.code() == absl::StatusCode::kCancelled)
          << status;
      ++load.too_slow;
    }
    IdleSession(client, session);
  });
}

void SendBadRequests(Load& load, const std::string& name, Random random) {
  InSessions(load, name, [&](Client& client, const std::string& session) {
    v1::GenerateRequest request = RandomTurn(random, session);
    absl::StatusCode expected = absl::StatusCode::kInvalidArgument;
    switch (random() % 4) {
      case 0:
        request.mutable_sampling()->set_top_p(-1);
        break;
      case 1:
        request.mutable_tokens()->add_ids(kVocabulary);
        break;
      case 2:
        request.set_expected_position(1'000'000);
        expected = absl::StatusCode::kAborted;
        break;
      default:
        request.set_session_id("nobody");
        expected = absl::StatusCode::kNotFound;
    }
    EXPECT_EQ(RunTurn(client, request).status.code(), expected);
    ++load.refused;
  });
}

using Kind = void (*)(Load&, const std::string&, Random);

std::vector<std::thread> StartClients(Load& load) {
  const std::map<std::string, std::pair<Kind, int>> kinds = {
      {"talk", {Talk, 6}},           {"bad-line", {TalkOverABadConnection, 3}},
      {"cancel", {Cancel, 3}},       {"slow", {ReadSlowly, 2}},
      {"bad", {SendBadRequests, 1}},
  };
  std::vector<std::thread> threads;
  for (const auto& [name, kind] : kinds) {
    for (int i = 0; i < kind.second; ++i) {
      threads.emplace_back(kind.first, std::ref(load),
                           absl::StrCat(name, "-", i),
                           Random(static_cast<uint32_t>(threads.size() + 1)));
    }
  }
  return threads;
}

// What is seen of a server under load.
struct Seen {
  int64_t bytes_before = 0;  // of memory, after a third of the time
  int64_t bytes_after = 0;
  Pace pace;
};

// Returns at the end of `load`, which begins now and takes `time`.
Seen Watch(Load& load, absl::Duration time) {
  const absl::Time begin = load.end - time;
  const auto count_at = [&](double part) {
    absl::SleepFor(begin + part * time - absl::Now());
    return TokenCount{absl::Now(), load.server.Status().tokens_delivered()};
  };
  Seen seen;
  const TokenCount start = count_at(0);
  seen.pace.first = TokensPerSecond(start, count_at(0.1));
  count_at(1 / 3.0);
  seen.bytes_before = load.server.OwnBytes();
  const TokenCount late = count_at(0.9);
  seen.pace.last = TokensPerSecond(late, count_at(1));
  return seen;
}

void Print(const Load& load, absl::Duration time, int64_t cuts,
           const Seen& seen) {
  std::printf(
      "%s: %d turns, %d cancelled, %d too slow, %d refused, %d connections "
      "lost; MB of its own %.1f after a third, %.1f at the end; tokens/s %.0f "
      "in the first tenth, %.0f in the last\n",
      absl::FormatDuration(time).c_str(), static_cast<int>(load.turns),
      static_cast<int>(load.cancelled), static_cast<int>(load.too_slow),
      static_cast<int>(load.refused), static_cast<int>(cuts),
      static_cast<double>(seen.bytes_before) / 1e6,
      static_cast<double>(seen.bytes_after) / 1e6, seen.pace.first,
      seen.pace.last);
}

// Open files of the server and sockets of its clients, which are all of this
// process: gRPC may keep one that no client uses any more.
struct OpenEnds {
  std::vector<std::string> files;
  int64_t sockets = 0;

  int64_t of_server() const {
    return static_cast<int64_t>(files.size()) - sockets;
  }
};

OpenEnds ReadOpenEnds(const ServerProcess& server) {
  const std::string& address = server.address();
  uint32_t port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  // IPv4 as it stands in both tables; gRPC's sockets are of IPv6.
  const std::string to_server = absl::StrFormat("0100007F:%04X", port);
  OpenEnds ends;
  ends.files = server.OpenFiles();
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream sockets(table);
    for (std::string line; std::getline(sockets, line);) {
      // number, local, remote, state, queues, timer, retries, user, timeout,
      // inode, which is 0 where no process has it
      const std::vector<std::string> fields =
          absl::StrSplit(line, ' ', absl::SkipWhitespace());
      if (absl::EndsWith(fields[2], to_server) && fields[9] != "0") {
        ++ends.sockets;
      }
    }
  }
  return ends;
}

TEST(Soak, MixedLoadLeavesNothingBehind) {
  ServerProcess server(GoldenModel("kimi-char"),
                       {"--slots", "4", "--slow-reader-limit", "3s",
                        // Full within the first third.
                        "--prefix-cache", "1MiB"});
  CuttingProxy proxy(server.address());
  proxy.CutAtRandom(20'000);
  server.Status();  // the test's own connection is there
  const OpenEnds before = ReadOpenEnds(server);
  ASSERT_EQ(before.sockets, 1);
  const absl::Duration time = SoakTime();
  Load load{server, proxy, absl::Now() + time};

  std::vector<std::thread> threads = StartClients(load);
  Seen seen = Watch(load, time);
  for (std::thread& thread : threads) thread.join();
  seen.bytes_after = server.OwnBytes();

  EXPECT_TRUE(WaitUntil([&] {
    const v1::GetServerStatusResponse status = server.Status();
    return status.turns_active() == 0 && status.slots_used() == 0;
  }));
  const v1::GetServerStatusResponse status = server.Status();
  EXPECT_EQ(status.sessions_busy() + status.sessions_idle(), 0);
  EXPECT_EQ(status.image_bytes(), 0);
  const std::set<std::string> provoked = {"OK", "CANCELLED", "ABORTED",
                                          "RESOURCE_EXHAUSTED"};
  for (const auto& [name, count] : status.turns_finished()) {
    EXPECT_TRUE(provoked.count(name)) << name << " " << count;
  }
  OpenEnds after;
  EXPECT_TRUE(WaitUntil([&] {
    after = ReadOpenEnds(server);
    return after.of_server() <= before.of_server();
  })) << "open: "
      << absl::StrJoin(after.files, " ") << ", of clients " << after.sockets
      << "; before: " << absl::StrJoin(before.files, " ") << ", of clients "
      << before.sockets;
  EXPECT_LE(seen.bytes_after, seen.bytes_before + seen.bytes_before / 10);
  EXPECT_GT(load.turns, 0);
  EXPECT_GT(load.cancelled, 0);
  EXPECT_GT(load.refused, 0);
  EXPECT_GT(proxy.cuts(), 0);
  Print(load, time, proxy.cuts(), seen);
  if (TellsItsPace(time)) {
    EXPECT_TRUE(seen.pace.Holds()) << seen.pace.first << " tokens/s at first, "
                                   << seen.pace.last << " in the last tenth";
  }
}

}  // namespace
}  // namespace txl::testing
