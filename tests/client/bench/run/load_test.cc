#include "client/bench/run/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/client/fake_service.h"

namespace txl::bench {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using testing::FakeServer;
using testing::FakeService;
using ::testing::Field;
using ::testing::HasSubstr;

LoadOptions Small(const FakeServer& server) {
  LoadOptions options;
  options.channel.address = server.address();
  options.run.streams = 3;
  options.run.requests = 12;
  options.run.workload.prompt_tokens = Distribution::Fixed(4);
  options.run.workload.max_tokens = Distribution::Fixed(5);
  return options;
}

TEST(DefaultConnections, IsOneForEachFiftyStreams) {
  EXPECT_EQ(DefaultConnections(1), 1);
  EXPECT_EQ(DefaultConnections(50), 1);
  EXPECT_EQ(DefaultConnections(51), 2);
  EXPECT_EQ(DefaultConnections(1000), 20);
}

TEST(RunLoad, RunsEveryTurnOnceAndTimesIt) {
  FakeServer server;
  Canceller canceller;
  const auto load = RunLoad(Small(server), &canceller);
  ASSERT_TRUE(load.ok()) << load.status();
  EXPECT_EQ(load->model, "fake");
  EXPECT_EQ(load->usage.connections, 1);
  EXPECT_EQ(load->usage.threads, 1);
  EXPECT_GT(load->usage.cpu_seconds, 0);
  ASSERT_EQ(load->result.turns.size(), 12u);
  std::set<uint64_t> seeds;
  for (const auto& request : server->generate_requests()) {
    seeds.insert(request.sampling().seed());
  }
  EXPECT_EQ(seeds.size(), 12u);
  for (const TurnRecord& turn : load->result.turns) {
    EXPECT_EQ(turn.status, "OK");
    EXPECT_EQ(turn.outcome, Outcome::kOk);
    EXPECT_EQ(turn.problem, "");
    EXPECT_EQ(turn.tokens, 5);
    EXPECT_EQ(turn.prompt_tokens, 4);
    EXPECT_LE(turn.scheduled, turn.sent);
    EXPECT_LT(turn.sent, turn.first_token);
    EXPECT_LE(turn.first_token, turn.last_token);
    EXPECT_LE(turn.last_token, turn.end);
    EXPECT_LE(turn.end, load->result.end);
  }
  EXPECT_EQ(load->result.gaps.count(), 12 * 4);
}

TEST(RunLoad, AnOpenLoopOnSeveralThreadsSendsEveryArrivalOnce) {
  FakeServer server;
  LoadOptions options = Small(server);
  options.run.mode = Mode::kOpen;
  options.run.rate.rate = 2000;
  options.run.requests = 40;
  options.threads = 3;
  Canceller canceller;
  const auto load = RunLoad(options, &canceller);
  ASSERT_TRUE(load.ok()) << load.status();
  std::set<int64_t> seen;
  for (const TurnRecord& turn : load->result.turns) {
    seen.insert(turn.conversation);
    EXPECT_EQ(turn.status, "OK");
  }
  EXPECT_EQ(seen.size(), 40u);
  EXPECT_EQ(load->result.turns.size(), 40u);
  EXPECT_EQ(load->usage.threads, 3);
  EXPECT_GE(load->usage.connections, 3);
}

TEST(RunLoad, AConversationIsASessionThatIsDeletedAtItsEnd) {
  FakeServer server;
  LoadOptions options = Small(server);
  options.run.requests = 2;
  options.run.workload.turns = Distribution::Fixed(3);
  Canceller canceller;
  const auto load = RunLoad(options, &canceller);
  ASSERT_TRUE(load.ok()) << load.status();
  EXPECT_EQ(load->result.turns.size(), 6u);
  std::set<std::string> sessions;
  for (const auto& request : server->generate_requests()) {
    sessions.insert(request.session_id());
  }
  EXPECT_EQ(sessions.size(), 2u);
  EXPECT_FALSE(sessions.contains(""));
  EXPECT_TRUE(server->sessions().empty());
  for (const auto& call : server->calls()) {
    if (call.method == "Generate") {
      EXPECT_TRUE(sessions.contains(call.session_header.value_or("none")));
    }
  }
}

TEST(RunLoad, CountsErrorsWithTheirReasons) {
  FakeServer server;
  server->on_generate = [](grpc::ServerContext*, const v1::GenerateRequest&,
                           FakeService::Writer*) {
    return testing::FakeError(grpc::RESOURCE_EXHAUSTED, "full", "QUEUE_FULL");
  };
  Canceller canceller;
  const auto load = RunLoad(Small(server), &canceller);
  ASSERT_TRUE(load.ok()) << load.status();
  EXPECT_THAT(
      load->result.turns,
      Each(AllOf(Field(&TurnRecord::status, "RESOURCE_EXHAUSTED (QUEUE_FULL)"),
                 Field(&TurnRecord::outcome, Outcome::kRejected),
                 Field(&TurnRecord::tokens, 0))));
}

TEST(RunLoad, ReportsMalformedStreams) {
  FakeServer server;
  server->on_generate = [](grpc::ServerContext*, const v1::GenerateRequest&,
                           FakeService::Writer* writer) {
    writer->Write(testing::StartedEvent(0, 4));
    writer->Write(testing::TokenEvent(2, 'x'));
    writer->Write(testing::FinishedEvent(5, 4, 1));
    return grpc::Status::OK;
  };
  Canceller canceller;
  const auto load = RunLoad(Small(server), &canceller);
  ASSERT_TRUE(load.ok()) << load.status();
  EXPECT_THAT(load->result.turns,
              Each(Field(&TurnRecord::problem, "index 2 where 0 was due")));
}

TEST(RunLoad, CancellingEndsRunningTurnsAndStartsNoMore) {
  FakeServer server;
  Canceller canceller;
  server->on_generate = [&](grpc::ServerContext* context,
                            const v1::GenerateRequest&, FakeService::Writer*) {
    canceller.Cancel();
    return testing::WaitUntilCancelled(context);
  };
  const auto load = RunLoad(Small(server), &canceller);
  ASSERT_TRUE(load.ok()) << load.status();
  EXPECT_LE(load->result.turns.size(), 3u);
  EXPECT_THAT(load->result.turns,
              Each(AllOf(Field(&TurnRecord::status, "CANCELLED"),
                         Field(&TurnRecord::outcome, Outcome::kIncomplete))));
}

TEST(RunLoad, ATurnsTimeoutIsItsDeadline) {
  FakeServer server;
  server->on_generate = [](grpc::ServerContext* context,
                           const v1::GenerateRequest&, FakeService::Writer*) {
    return testing::WaitUntilCancelled(context);
  };
  LoadOptions options = Small(server);
  options.run.requests = 1;
  options.timeout_seconds = 0.05;
  Canceller canceller;
  const auto load = RunLoad(options, &canceller);
  ASSERT_TRUE(load.ok()) << load.status();
  ASSERT_EQ(load->result.turns.size(), 1u);
  EXPECT_EQ(load->result.turns[0].status, "DEADLINE_EXCEEDED");
  EXPECT_EQ(load->result.turns[0].outcome, Outcome::kFailed);
}

TEST(RunLoad, APlannedCancelIsNoFailure) {
  FakeServer server;
  server->on_generate = [](grpc::ServerContext* context,
                           const v1::GenerateRequest&,
                           FakeService::Writer* writer) {
    writer->Write(testing::StartedEvent(0, 4));
    for (int32_t i = 0; i < 4; ++i) writer->Write(testing::TokenEvent(i, 'a'));
    return testing::WaitUntilCancelled(context);
  };
  LoadOptions options = Small(server);
  options.run.workload.cancel_share = 1;
  Canceller canceller;
  const auto load = RunLoad(options, &canceller);
  ASSERT_TRUE(load.ok()) << load.status();
  EXPECT_THAT(load->result.turns,
              Each(AllOf(Field(&TurnRecord::status, "CANCELLED"),
                         Field(&TurnRecord::outcome, Outcome::kCancelled),
                         Field(&TurnRecord::problem, ""))));
}

TEST(RunLoad, RefusesLengthsThatTheServerDoesNotTake) {
  FakeServer server;
  server->max_prompt_tokens = 100;
  LoadOptions options = Small(server);
  options.run.workload.prompt_tokens = *Distribution::Parse("uniform:1:101");
  Canceller canceller;
  const absl::Status status = RunLoad(options, &canceller).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--prompt-tokens"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("100"));
  EXPECT_TRUE(server->generate_requests().empty());
}

TEST(RunLoad, FailsWhenThereIsNoServer) {
  LoadOptions options;
  options.channel.address = "unix:no-such-socket";
  Canceller canceller;
  EXPECT_EQ(RunLoad(options, &canceller).status().code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace txl::bench
