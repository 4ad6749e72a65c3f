// How turns end other than by their own rules.

#include <gmock/gmock.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

// A Generate call that a test reads, cancels or leaves alone.
struct OpenStream {
  explicit OpenStream(RpcWorld* world, const std::string& request) {
    reader = world->generation->Generate(&client,
                                         Proto<v1::GenerateRequest>(request));
  }
  // The next event is Started: the turn runs.
  void ExpectStarted() {
    v1::GenerateResponse event;
    ASSERT_TRUE(reader->Read(&event));
    EXPECT_TRUE(event.has_started());
  }
  grpc::Status ReadToEnd(int* events = nullptr) {
    v1::GenerateResponse event;
    while (reader->Read(&event)) {
      if (events != nullptr) ++*events;
    }
    return reader->Finish();
  }

  grpc::ClientContext client;
  std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader;
};

// A prompt of more steps than are ever in flight: a turn that is cancelled
// while the device is held cannot have its first token.
std::string LongPrompt() { return std::string(2000, 'a'); }

// The server knows that the client has left.
constexpr char kCancelSeen[] = "\"event\":\"cancel\"";

int64_t Finished(RpcWorld& world, const std::string& status) {
  return world.metrics.Get().turns_finished[status];
}

bool Idle(RpcWorld& world, const std::string& session) {
  return world.GetSession(session).state() == v1::SESSION_STATE_IDLE;
}

TEST(TurnEnds, CancelBeforeTheFirstTokenLeavesTheSessionAsItWas) {
  RpcWorld world;
  world.MakeSession("s", {5, 6});
  world.runner.Hold();
  OpenStream stream(&world,
                    absl::StrCat("session_id: 's' text: '", LongPrompt(), "'"));
  stream.ExpectStarted();
  stream.client.TryCancel();
  EXPECT_EQ(Outcome(stream.ReadToEnd()), "CANCELLED");
  EXPECT_TRUE(world.Logged(kCancelSeen));
  world.runner.Release();
  EXPECT_TRUE(Eventually([&] { return Finished(world, "CANCELLED") == 1; }));
  EXPECT_TRUE(Eventually([&] { return Idle(world, "s"); }));
  EXPECT_EQ(world.GetSession("s").position(), 2);
}

TEST(TurnEnds, DeadlineIsHonouredByTheServer) {
  RpcWorld world;
  world.runner.Hold();
  grpc::ClientContext client;
  client.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(1)));
  auto reader = world.generation->Generate(
      &client,
      Proto<v1::GenerateRequest>(absl::StrCat("text: '", LongPrompt(), "'")));
  v1::GenerateResponse event;
  while (reader->Read(&event)) {
  }
  EXPECT_EQ(Outcome(reader->Finish()), "DEADLINE_EXCEEDED");
  EXPECT_TRUE(world.Logged(kCancelSeen));
  world.runner.Release();
  EXPECT_TRUE(
      Eventually([&] { return Finished(world, "DEADLINE_EXCEEDED") == 1; }));
}

TEST(TurnEnds, CancelOfAnAppendChangesNothing) {
  RpcWorld world;
  world.MakeSession("s", {5});
  world.runner.Hold();
  grpc::ClientContext client;
  std::thread feeding([&] {
    v1::AppendTokensResponse response;
    const grpc::Status status = world.sessions->AppendTokens(
        &client,
        Proto<v1::AppendTokensRequest>(
            absl::StrCat("session_id: 's' text: '", LongPrompt(), "'")),
        &response);
    EXPECT_EQ(Outcome(status), "CANCELLED");
  });
  EXPECT_TRUE(Eventually([&] { return !Idle(world, "s"); }));
  client.TryCancel();
  feeding.join();
  EXPECT_TRUE(world.Logged(kCancelSeen));
  world.runner.Release();
  EXPECT_TRUE(Eventually([&] { return Idle(world, "s"); }));
  EXPECT_EQ(world.GetSession("s").position(), 1);
}

TEST(TurnEnds, ASecondTurnOnABusySessionIsAborted) {
  RpcWorld world;
  world.MakeSession("s");
  world.runner.Hold();
  OpenStream stream(&world, "session_id: 's' text: 'a' stop { max_tokens: 2 }");
  stream.ExpectStarted();
  const Stream second = world.Generate("session_id: 's' text: 'b'");
  EXPECT_EQ(Outcome(second.status), "ABORTED SESSION_BUSY");
  EXPECT_TRUE(HasRetryInfo(second.status));
  EXPECT_EQ(world.GetSession("s").state(), v1::SESSION_STATE_BUSY);
  world.runner.Release();
  EXPECT_EQ(Outcome(stream.ReadToEnd()), "OK");
}

TEST(TurnEnds, DeletingTheSessionEndsItsTurn) {
  RpcWorld world;
  world.MakeSession("s");
  world.runner.Hold();
  OpenStream stream(&world, "session_id: 's' text: 'a'");
  stream.ExpectStarted();
  grpc::ClientContext client;
  v1::DeleteSessionResponse response;
  EXPECT_EQ(Outcome(world.sessions->DeleteSession(
                &client, Proto<v1::DeleteSessionRequest>("session_id: 's'"),
                &response)),
            "OK");
  world.runner.Release();
  EXPECT_EQ(Outcome(stream.ReadToEnd()), "ABORTED SESSION_DELETED");
}

TEST(TurnEnds, AFailedStepIsInternalForItsTurnOnly) {
  RpcWorld world;
  world.runner.FailStep(0, absl::InternalError("device said no"));
  const Stream failed = world.Generate("text: 'a' stop { max_tokens: 2 }");
  EXPECT_EQ(Outcome(failed.status), "INTERNAL STEP_FAILED");
  const Stream next = world.Generate("text: 'a' stop { max_tokens: 2 }");
  EXPECT_EQ(Outcome(next.status), "OK");
}

TEST(TurnEnds, EndAllEndsRunningTurnsWithServerDrain) {
  RpcWorldOptions options;
  options.limits.max_tokens = 1'000'000;
  RpcWorld world(options);
  OpenStream stream(&world, "text: 'a' stop { max_tokens: 1000000 }");
  v1::GenerateResponse event;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stream.reader->Read(&event));
  world.lifecycle.SetDraining();
  world.scheduler->StartDrain();
  EXPECT_EQ(Outcome(world.Generate("text: 'b'").status),
            "UNAVAILABLE DRAINING");
  world.scheduler->EndAll();
  v1::GenerateResponse last;
  while (stream.reader->Read(&event)) last = event;
  EXPECT_EQ(Outcome(stream.reader->Finish()), "OK");
  EXPECT_EQ(last.finished().reason(), v1::FINISH_REASON_SERVER_DRAIN);
  EXPECT_TRUE(Eventually([&] { return world.scheduler->Idle(); }));
}

// Messages big enough that a client that does not read blocks the stream soon.
constexpr char kLongStream[] =
    "session_id: 's' text: 'a' stop { max_tokens: 100000 } "
    "output { logprobs: 200 }";

RpcWorldOptions SlowReaderOptions(absl::Duration limit) {
  RpcWorldOptions options;
  options.limits.max_tokens = 100'000;
  options.limits.logprobs = 200;
  options.scheduler.slow_reader_limit = limit;
  return options;
}

// A turn is parked at its limit; the steps that are in flight then bring it
// more. One of its events may be in gRPC's hands.
bool IsFullStream(const RpcWorld& world) {
  const Snapshot s = world.metrics.Get();
  const int32_t limit = world.context.turns.model.scheduler.park_events;
  EXPECT_LE(s.stream_queue_tokens, limit + world.runner.info().depth);
  return s.turns_parked == 1 && s.stream_queue_tokens >= limit - 1;
}

bool NoTokenWaits(const RpcWorld& world) {
  return Eventually(
      [&] { return world.metrics.Get().stream_queue_tokens == 0; });
}

TEST(SlowReader, IsParkedAndGoesOnWhenItReads) {
  RpcWorldOptions options = SlowReaderOptions(absl::Minutes(1));
  options.limits.max_tokens = 1'000;
  RpcWorld world(options);
  world.MakeSession("s");
  OpenStream stream(&world,
                    "session_id: 's' text: 'a' stop { max_tokens: 1000 } "
                    "output { logprobs: 200 }");
  ASSERT_TRUE(Eventually([&] { return IsFullStream(world); }));
  // Others are served meanwhile.
  EXPECT_EQ(Outcome(world.Generate("text: 'b' stop { max_tokens: 5 }").status),
            "OK");
  int events = 0;
  EXPECT_EQ(Outcome(stream.ReadToEnd(&events)), "OK");
  EXPECT_EQ(events, 1002);
  EXPECT_TRUE(NoTokenWaits(world));
}

TEST(SlowReader, ThatNeverCatchesUpIsClosed) {
  RpcWorld world(SlowReaderOptions(absl::Milliseconds(300)));
  world.MakeSession("s");
  OpenStream stream(&world, kLongStream);
  ASSERT_TRUE(
      Eventually([&] { return Finished(world, "RESOURCE_EXHAUSTED") == 1; }));
  EXPECT_TRUE(
      Eventually([&] { return world.metrics.Get().turns_parked == 0; }));
  const int64_t position = world.GetSession("s").position();
  EXPECT_LT(position, 100'000);
  // Every token that the session holds was handed to the stream.
  int events = 0;
  EXPECT_EQ(Outcome(stream.ReadToEnd(&events)),
            "RESOURCE_EXHAUSTED CLIENT_TOO_SLOW");
  EXPECT_EQ(events, position);  // Started stands for the prompt's one token
  EXPECT_TRUE(NoTokenWaits(world));
}

TEST(SlowReader, ThatReadsNoStatusEitherLosesItsCall) {
  RpcWorld world(SlowReaderOptions(absl::Milliseconds(20)));
  world.MakeSession("s");
  OpenStream stream(&world, kLongStream);
  EXPECT_TRUE(world.Logged("CLIENT_TOO_SLOW"));
  EXPECT_FALSE(stream.ReadToEnd().ok());
  EXPECT_TRUE(NoTokenWaits(world));  // those that were never sent
}

}  // namespace
}  // namespace txl
