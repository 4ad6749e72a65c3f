#include "client/bench/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/client/fake_service.h"

namespace txl::bench {
namespace {

using ::testing::Each;
using testing::FakeServer;
using testing::FakeService;
using ::testing::Field;

LoadOptions Small(const FakeServer& server) {
  LoadOptions options;
  options.channel.address = server.address();
  options.streams = 3;
  options.requests = 12;
  options.prompt_tokens = 4;
  options.max_tokens = 5;
  return options;
}

TEST(DefaultConnections, IsOneForEachFiftyStreams) {
  EXPECT_EQ(DefaultConnections(1), 1);
  EXPECT_EQ(DefaultConnections(50), 1);
  EXPECT_EQ(DefaultConnections(51), 2);
  EXPECT_EQ(DefaultConnections(1000), 20);
}

TEST(MakeTurn, AsksForWhatTheOptionsSay) {
  LoadOptions options;
  options.prompt_tokens = 100;
  options.max_tokens = 9;
  options.temperature = 0.5;
  const v1::GenerateRequest request = MakeTurn(options, 7, 0);
  EXPECT_EQ(request.tokens().ids_size(), 100);
  EXPECT_THAT(request.tokens().ids(), Each(::testing::Lt(7u)));
  EXPECT_EQ(request.stop().max_tokens(), 9);
  EXPECT_TRUE(request.stop().ignore_end_token());
  EXPECT_EQ(request.sampling().temperature(), 0.5);
  EXPECT_TRUE(request.sampling().has_seed());
  EXPECT_EQ(request.session_id(), "");
}

TEST(MakeTurn, IsTheSameForTheSameSeedAndIndexAndDiffersOtherwise) {
  LoadOptions options;
  LoadOptions reseeded;
  reseeded.seed = 1;
  const std::string turn = MakeTurn(options, 256, 3).SerializeAsString();
  EXPECT_EQ(turn, MakeTurn(options, 256, 3).SerializeAsString());
  EXPECT_NE(turn, MakeTurn(options, 256, 4).SerializeAsString());
  EXPECT_NE(turn, MakeTurn(reseeded, 256, 3).SerializeAsString());
}

TEST(RunLoad, RunsEveryTurnOnceAndTimesIt) {
  FakeServer server;
  Canceller canceller;
  const auto result = RunLoad(Small(server), &canceller);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->model, "fake");
  EXPECT_EQ(result->options.connections, 1);
  ASSERT_EQ(result->turns.size(), 12u);
  std::set<uint64_t> seeds;
  for (const auto& request : server->generate_requests()) {
    seeds.insert(request.sampling().seed());
  }
  EXPECT_EQ(seeds.size(), 12u);
  for (const TurnResult& turn : result->turns) {
    EXPECT_EQ(turn.status, "OK");
    EXPECT_EQ(turn.problem, "");
    EXPECT_EQ(turn.tokens, 5);
    EXPECT_EQ(turn.gaps.size(), 4u);
    EXPECT_GT(turn.first_token, 0);
    EXPECT_LE(turn.first_token, turn.total);
    EXPECT_LE(turn.total, result->seconds);
  }
}

TEST(RunLoad, CountsErrorsWithTheirReasons) {
  FakeServer server;
  server->on_generate = [](grpc::ServerContext*, const v1::GenerateRequest&,
                           FakeService::Writer*) {
    return testing::FakeError(grpc::RESOURCE_EXHAUSTED, "full", "QUEUE_FULL");
  };
  Canceller canceller;
  const auto result = RunLoad(Small(server), &canceller);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->turns, Each(Field(&TurnResult::status,
                                        "RESOURCE_EXHAUSTED (QUEUE_FULL)")));
  EXPECT_THAT(result->turns, Each(Field(&TurnResult::tokens, 0)));
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
  const auto result = RunLoad(Small(server), &canceller);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->turns,
              Each(Field(&TurnResult::problem, "index 2 where 0 was due")));
}

TEST(RunLoad, CancellingEndsRunningTurnsAndStartsNoMore) {
  FakeServer server;
  Canceller canceller;
  server->on_generate = [&](grpc::ServerContext* context,
                            const v1::GenerateRequest&, FakeService::Writer*) {
    canceller.Cancel();
    return testing::WaitUntilCancelled(context);
  };
  const auto result = RunLoad(Small(server), &canceller);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LE(result->turns.size(), 3u);
  EXPECT_THAT(result->turns, Each(Field(&TurnResult::status, "CANCELLED")));
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
