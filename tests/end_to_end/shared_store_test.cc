// Several servers on one Redis: a session goes on on any of them, whatever
// becomes of the others.

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"
#include "tests/server/store/redis/redis_server.h"

namespace txl::testing {
namespace {

constexpr int32_t kTokens = 400;
const std::vector<uint32_t> kPrompt = {1, 2, 3};

class SharedStore : public ::testing::Test {
 protected:
  std::unique_ptr<ServerProcess> Start(
      const std::vector<std::string>& more = {}) const {
    std::vector<std::string> flags = {
        "--slots", "4", "--store", redis_.url(), "--session-lease", "2s"};
    flags.insert(flags.end(), more.begin(), more.end());
    return std::make_unique<ServerProcess>(ShippedModel(), flags);
  }
  static v1::GenerateRequest Request(const std::string& request_id) {
    v1::GenerateRequest request = Greedy("s", kPrompt, kTokens);
    request.set_request_id(request_id);
    return request;
  }
  static v1::GenerateRequest Again(v1::GenerateRequest request,
                                   const TurnOutput& first) {
    request.mutable_received()->set_seed(first.started.seed());
    request.mutable_received()->mutable_token_ids()->Assign(first.ids.begin(),
                                                            first.ids.end());
    return request;
  }
  // What a server says that nothing befalls: of `turns` such turns the last.
  // The first one has so many tokens.
  static std::vector<uint32_t> Undisturbed(int turns, int32_t first = kTokens) {
    ServerProcess alone(ShippedModel(), {"--slots", "2"});
    CreateSession(alone.client(), "s");
    TurnOutput output;
    for (int i = 0; i < turns; ++i) {
      output = RunTurn(alone.client(),
                       Greedy("s", kPrompt, i == 0 ? first : kTokens));
      EXPECT_TRUE(output.status.ok()) << output.status;
    }
    return output.ids;
  }

  RedisServer redis_;
};

// RunTurn would want the indices of a whole turn.
TurnOutput Rest(Client& client, const v1::GenerateRequest& request) {
  TurnOutput output;
  output.status =
      client.Generate(request, {}, [&](const v1::GenerateResponse& response) {
        if (response.has_started()) output.started = response.started();
        if (response.has_finished()) output.finished = response.finished();
        if (response.has_token()) {
          output.ids.push_back(response.token().token_id());
        }
      });
  return output;
}

std::vector<uint32_t> Joined(const TurnOutput& first, const TurnOutput& rest) {
  std::vector<uint32_t> ids = first.ids;
  ids.insert(ids.end(), rest.ids.begin(), rest.ids.end());
  return ids;
}

TEST_F(SharedStore, ASessionGoesOnOnAnotherServer) {
  const auto first = Start();
  const auto second = Start();
  CreateSession(first->client(), "s");
  ASSERT_TRUE(RunTurn(first->client(), Request("1")).status.ok());
  const TurnOutput output = RunTurn(second->client(), Request("2"));
  ASSERT_TRUE(output.status.ok()) << output.status;
  EXPECT_EQ(output.ids, Undisturbed(2));
  EXPECT_EQ(IdleSession(first->client(), "s").session().position(),
            2 * (kTokens + static_cast<int64_t>(kPrompt.size())));
  EXPECT_EQ(first->Status().store().state(), "serving");
  // The turn that is done is told again by whoever is asked.
  const TurnOutput again = RunTurn(first->client(), Request("2"));
  EXPECT_EQ(again.ids, output.ids);
}

TEST_F(SharedStore, AKilledServersTurnGoesOnElsewhereWithTheSameTokens) {
  auto first = Start();
  const auto second = Start();
  CreateSession(first->client(), "s");
  const TurnOutput broken =
      RunTurn(first->client(), Request("1"), {}, [&](int64_t tokens) {
        if (tokens == 50) first->Signal(SIGKILL);
      });
  first->Wait();
  ASSERT_FALSE(broken.status.ok());
  ASSERT_GE(broken.ids.size(), 50u);
  const TurnOutput rest = Rest(second->client(), Again(Request("1"), broken));
  ASSERT_TRUE(rest.status.ok()) << rest.status;
  EXPECT_EQ(Joined(broken, rest), Undisturbed(1));
}

TEST_F(SharedStore, AStoppedServerWritesNothingAfterItsSessionMoved) {
  const auto first = Start();
  const auto second = Start();
  CreateSession(first->client(), "s");
  absl::Notification stopped;
  const auto client = first->NewClient();
  TurnOutput late;
  v1::GenerateRequest request = Request("1");
  request.mutable_stop()->set_max_tokens(4000);
  std::thread reader([&] {
    late = RunTurn(*client, request, {}, [&](int64_t tokens) {
      if (tokens != 20) return;
      first->Signal(SIGSTOP);
      stopped.Notify();
    });
  });
  stopped.WaitForNotification();
  const TurnOutput taken = Rest(second->client(), request);
  EXPECT_TRUE(taken.status.ok()) << taken.status;
  const auto before = IdleSession(second->client(), "s");
  EXPECT_EQ(before.session().position(),
            4000 + static_cast<int64_t>(kPrompt.size()));
  first->Signal(SIGCONT);
  reader.join();
  ExpectError(late.status, absl::StatusCode::kAborted, "SESSION_MOVED");
  const auto after = IdleSession(second->client(), "s");
  EXPECT_EQ(after.token_ids_size(), before.token_ids_size());
  EXPECT_EQ(after.session().position(), before.session().position());
  // What the first server shows is the session, not its own late copy.
  EXPECT_EQ(IdleSession(first->client(), "s").session().position(),
            before.session().position());
}

// Both find no child, and both make one.
TEST_F(SharedStore, AForkSentToTwoServersAtOnceIsOne) {
  const auto first = Start();
  const auto second = Start();
  CreateSession(first->client(), "s");
  ASSERT_TRUE(RunTurn(first->client(), Request("1")).status.ok());
  for (int i = 0; i < 30; ++i) {
    v1::ForkSessionRequest fork;
    fork.set_session_id("s");
    fork.set_new_session_id(absl::StrCat("child-", i));
    fork.set_request_id("fork");
    absl::Status there;
    std::thread other(
        [&] { there = second->client().ForkSession(fork).status(); });
    const absl::Status here = first->client().ForkSession(fork).status();
    other.join();
    EXPECT_TRUE(here.ok()) << here;
    EXPECT_TRUE(there.ok()) << there;
  }
}

// The first server's copy of what was deleted is still there.
TEST_F(SharedStore, WhatWasDeletedElsewhereIsImported) {
  const auto first = Start();
  const auto second = Start();
  CreateSession(first->client(), "s");
  ASSERT_TRUE(RunTurn(first->client(), Request("1")).status.ok());
  v1::ExportSessionRequest out;
  out.set_session_id("s");
  std::string file;
  ASSERT_TRUE(first->client()
                  .ExportSession(out, {},
                                 [&](absl::string_view chunk) {
                                   absl::StrAppend(&file, chunk);
                                   return absl::OkStatus();
                                 })
                  .ok());
  v1::DeleteSessionRequest gone;
  gone.set_session_id("s");
  ASSERT_TRUE(second->client().DeleteSession(gone).ok());
  v1::ImportSessionRequest in;
  in.set_session_id("s");
  const auto made = first->client().ImportSession(
      in, {},
      [&]() -> absl::StatusOr<std::string> { return std::exchange(file, ""); });
  EXPECT_TRUE(made.ok()) << made.status();
}

TEST_F(SharedStore, ARedisThatIsKilledUnderATurnLosesNothing) {
  const auto server = Start();
  CreateSession(server->client(), "s");
  v1::GenerateRequest request = Request("1");
  const TurnOutput output =
      RunTurn(server->client(), request, {}, [&](int64_t tokens) {
        if (tokens != 30) return;
        redis_.Kill();
        redis_.Start();
      });
  ASSERT_TRUE(output.status.ok()) << output.status;
  EXPECT_EQ(output.ids, Undisturbed(1));
  const auto other = Start();
  const auto session = IdleSession(other->client(), "s");
  EXPECT_EQ(session.session().position(),
            kTokens + static_cast<int64_t>(kPrompt.size()));
}

TEST_F(SharedStore, WithoutRedisTheServerSaysSoAndServesAgainAfterwards) {
  const auto server = Start();
  CreateSession(server->client(), "s");
  redis_.Kill();
  ExpectError(Rest(server->client(), Request("1")).status,
              absl::StatusCode::kUnavailable, "STORE_UNAVAILABLE");
  EXPECT_TRUE(WaitUntil(
      [&] { return server->Status().store().state() == "unreachable"; }));
  redis_.Start();
  EXPECT_TRUE(
      WaitUntil([&] { return server->Status().store().state() == "serving"; }));
  EXPECT_TRUE(RunTurn(server->client(), Request("1")).status.ok());
}

TEST_F(SharedStore, ADrainedServersSessionsAreFreeAtOnce) {
  const auto first = Start();
  const auto second = Start();
  CreateSession(first->client(), "s");
  ASSERT_TRUE(RunTurn(first->client(), Request("1")).status.ok());
  first->Terminate();
  EXPECT_EQ(first->Wait(), 0);
  EXPECT_TRUE(RunTurn(second->client(), Request("2")).status.ok());
}

// Servers with one folder of state images.
class SharedImages : public SharedStore {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::vector<std::string> Flags() const {
    // A state is saved where its last image is so old.
    return {"--image-dir", folder_, "--snapshot-tokens", "500"};
  }
  bool Saved() const {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(folder_ + "/images")) {
      if (entry.path().extension() == ".txlm") return true;
    }
    return false;
  }
  // Rows that the server fed only to have what another one had.
  static int64_t Rebuilt(ServerProcess& server) {
    return server.Status().rows_rebuild();
  }

  std::string folder_ = ::testing::TempDir() + "/imagesXXXXXX";
};

TEST_F(SharedImages, WhatADrainedServerSavedIsNotRebuilt) {
  const auto first = Start(Flags());
  const auto second = Start(Flags());
  CreateSession(first->client(), "s");
  ASSERT_TRUE(RunTurn(first->client(), Request("1")).status.ok());
  first->Terminate();
  EXPECT_EQ(first->Wait(), 0);
  const TurnOutput output = RunTurn(second->client(), Request("2"));
  EXPECT_EQ(output.ids, Undisturbed(2));
  EXPECT_EQ(Rebuilt(*second), 0);
  // Without its image it is fed again.
  second->Terminate();
  EXPECT_EQ(second->Wait(), 0);
  std::filesystem::remove_all(folder_);
  const auto third = Start();
  EXPECT_EQ(RunTurn(third->client(), Request("3")).ids, Undisturbed(3));
  EXPECT_GT(Rebuilt(*third), 2 * kTokens);
}

TEST_F(SharedImages, WhatAKilledServerSavedIsCaughtUpWith) {
  const auto first = Start(Flags());
  const auto second = Start(Flags());
  constexpr int32_t kSaved = 600;
  CreateSession(first->client(), "s");
  v1::GenerateRequest request = Request("1");
  request.mutable_stop()->set_max_tokens(kSaved);
  ASSERT_TRUE(RunTurn(first->client(), request).status.ok());
  ASSERT_TRUE(WaitUntil([&] { return Saved(); }));
  ASSERT_TRUE(RunTurn(first->client(), Request("2")).status.ok());
  const TurnOutput broken =
      RunTurn(first->client(), Request("3"), {}, [&](int64_t tokens) {
        if (tokens == 50) first->Signal(SIGKILL);
      });
  first->Wait();
  ASSERT_FALSE(broken.status.ok());
  const TurnOutput rest = Rest(second->client(), Again(Request("3"), broken));
  ASSERT_TRUE(rest.status.ok()) << rest.status;
  EXPECT_EQ(Joined(broken, rest), Undisturbed(3, kSaved));
  // The second turn and what was stored of the third; not the first one.
  EXPECT_GE(Rebuilt(*second), kTokens);
  EXPECT_LT(Rebuilt(*second), kTokens + kSaved);
}

// Of a server that cannot start.
Completed TryToStart(std::vector<std::string> flags) {
  std::vector<std::string> command = {
      TXL_SERVER_PROGRAM, "--model", ShippedModel(), "--listen", "127.0.0.1:0"};
  command.insert(command.end(), flags.begin(), flags.end());
  return RunProgram(command);
}

TEST(SharedStoreStart, ARedisThatForgetsIsRefused) {
  const RedisServer forgets({"--appendonly", "no"});
  const Completed ended = TryToStart({"--store", forgets.url()});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.err.find("--store: 127.0.0.1:"), std::string::npos)
      << ended.err;
  EXPECT_NE(ended.err.find("appendonly"), std::string::npos) << ended.err;
}

TEST(SharedStoreStart, ADiskThatFollowsIsSaid) {
  const RedisServer late({"--appendfsync", "everysec"});
  ServerProcess server(ShippedModel(), {"--store", late.url()});
  EXPECT_EQ(server.Status().store().durability(), "turn, up to 2 s");
}

}  // namespace
}  // namespace txl::testing
