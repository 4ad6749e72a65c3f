// The simulated server does what its programme says, also where the load test
// would not notice.
#include "tests/client/bench/simulated_target.h"

#include <gtest/gtest.h>

#include "tests/client/bench/simulated_run.h"

namespace txl::bench {
namespace {

using Kind = Event::Kind;
constexpr Nanos kNever = 1'000'000 * kMs;

v1::GenerateRequest Ask(int32_t tokens) {
  v1::GenerateRequest request;
  request.mutable_tokens()->add_ids(1);
  request.mutable_stop()->set_max_tokens(tokens);
  return request;
}

SimulatedServer Steady() {
  SimulatedServer server;
  server.first_token = [](int64_t) { return 10 * kMs; };
  server.gap = [](int64_t, int64_t) { return 2 * kMs; };
  return server;
}

TEST(ASimulatedTurn, IsStartedTokensFinishedAndTheEnd) {
  SimulatedTarget target(Steady());
  target.StartTurn(3, Ask(2), {});
  std::string events;
  std::vector<Nanos> times;
  for (Event event = target.Next(kNever); event.kind == Kind::kResponse;
       event = target.Next(kNever)) {
    EXPECT_EQ(event.call, 3);
    events += event.response->has_started()    ? 'S'
              : event.response->has_token()    ? 'T'
              : event.response->has_finished() ? 'F'
                                               : '?';
    times.push_back(target.Now());
    target.Read(3);
  }
  EXPECT_EQ(events, "STTF");
  EXPECT_EQ(times, (std::vector<Nanos>{0, 10 * kMs, 12 * kMs, 12 * kMs}));
}

TEST(ASimulatedTurn, WaitsForASlot) {
  SimulatedServer server = Steady();
  server.slots = 1;
  SimulatedTarget target(server);
  target.StartTurn(0, Ask(1), {});
  target.StartTurn(1, Ask(1), {});
  std::vector<std::pair<int32_t, Nanos>> starts;
  for (Event event = target.Next(kNever); event.kind != Kind::kNone;
       event = target.Next(kNever)) {
    if (event.kind != Kind::kResponse) continue;
    if (event.response->has_started()) {
      starts.emplace_back(event.call, target.Now());
    }
    target.Read(event.call);
  }
  EXPECT_EQ(starts,
            (std::vector<std::pair<int32_t, Nanos>>{{0, 0}, {1, 10 * kMs}}));
  EXPECT_EQ(target.most_running(), 1);
}

TEST(ASimulatedTurn, HandsNothingOutThatIsNotRead) {
  SimulatedTarget target(Steady());
  target.StartTurn(0, Ask(5), {});
  EXPECT_EQ(target.Next(kNever).kind, Kind::kResponse);
  EXPECT_EQ(target.Next(100 * kMs).kind, Kind::kNone);
  EXPECT_EQ(target.Now(), 100 * kMs);
  target.Read(0);
  EXPECT_TRUE(target.Next(kNever).response->has_token());
  EXPECT_EQ(target.Now(), 100 * kMs);
}

TEST(ASimulatedTurn, ThatIsCancelledEndsAtOnceAndFreesItsSlot) {
  SimulatedServer server = Steady();
  server.slots = 1;
  SimulatedTarget target(server);
  target.StartTurn(0, Ask(1000), {});
  EXPECT_EQ(target.Next(kNever).kind, Kind::kResponse);
  target.StartTurn(1, Ask(1), {});
  target.Cancel(0);
  const Event end = target.Next(kNever);
  EXPECT_EQ(end.kind, Kind::kEnd);
  EXPECT_TRUE(absl::IsCancelled(end.status));
  const Event next = target.Next(kNever);
  EXPECT_EQ(next.call, 1);
  EXPECT_EQ(target.Now(), 0);
}

TEST(ASimulatedServer, RefusesWhatItsQueueDoesNotHold) {
  SimulatedServer server = Steady();
  server.slots = 1;
  server.queue = 1;
  SimulatedTarget target(server);
  for (int32_t call = 0; call < 3; ++call) target.StartTurn(call, Ask(1), {});
  EXPECT_EQ(target.Next(kNever).call, 0);
  const Event refused = target.Next(kNever);
  EXPECT_EQ(refused.call, 2);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status));
}

TEST(ASimulatedStall, AddsItsLengthToWorkThatItMeets) {
  SimulatedServer server = {.stalls = {{100, 50}, {300, 1000}}};
  EXPECT_EQ(server.Done(0, 100), 100);
  EXPECT_EQ(server.Done(0, 101), 151);
  EXPECT_EQ(server.Done(120, 10), 160);
  EXPECT_EQ(server.Done(150, 100), 250);
  EXPECT_EQ(server.Done(0, 260), 1310);
}

TEST(SimulatedSessions, KeepTheirPositionsWhileTheyExist) {
  SimulatedTarget target(Steady());
  target.CreateSession(0, "a");
  EXPECT_EQ(target.Next(kNever).kind, Kind::kEnd);
  for (const int64_t position : {0, 3}) {
    target.StartTurn(0, Ask(2), {.session_id = "a"});
    Event event = target.Next(kNever);
    EXPECT_EQ(event.response->started().position(), position);
    while (event.kind == Kind::kResponse) {
      target.Read(0);
      event = target.Next(kNever);
    }
    EXPECT_TRUE(event.status.ok());
  }
  target.StartTurn(1, Ask(1), {.session_id = "b"});
  EXPECT_TRUE(absl::IsNotFound(target.Next(kNever).status));
}

}  // namespace
}  // namespace txl::bench
