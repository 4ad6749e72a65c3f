#include "client/bench/run/grpc_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "absl/time/clock.h"
#include "tests/client/fake_service.h"

namespace txl::bench {
namespace {

using testing::FakeServer;
using testing::FakeService;
using Kind = Event::Kind;

// A time by which a call to a living server ends, on any machine.
constexpr Nanos kLong = 60 * kNanosPerSecond;

class GrpcTargetTest : public ::testing::Test {
 protected:
  std::unique_ptr<GrpcTarget> Connect(int32_t turns_per_connection = 0) {
    GrpcTargetOptions options;
    options.channel.address = server_.address();
    options.turns_per_connection = turns_per_connection;
    auto target = GrpcTarget::Create(options);
    EXPECT_TRUE(target.ok()) << target.status();
    return *std::move(target);
  }

  v1::GenerateRequest Request() {
    v1::GenerateRequest request;
    request.mutable_tokens()->add_ids(1);
    return request;
  }

  // Generate waits until its client leaves.
  void Hang() {
    server_->on_generate = [this](grpc::ServerContext* context,
                                  const v1::GenerateRequest&,
                                  FakeService::Writer*) {
      ++hanging_;
      return testing::WaitUntilCancelled(context);
    };
  }

  Event Next(GrpcTarget& target) { return target.Next(target.Now() + kLong); }

  std::atomic<int> hanging_{0};
  FakeServer server_;
};

TEST_F(GrpcTargetTest, HandsOverEveryEventInOrderThenTheEnd) {
  const auto target = Connect();
  target->StartTurn(7, Request(), {});
  std::string text;
  std::vector<v1::GenerateResponse::EventCase> events;
  Event event = Next(*target);
  for (; event.kind == Kind::kResponse; event = Next(*target)) {
    EXPECT_EQ(event.call, 7);
    events.push_back(event.response->event_case());
    text += event.response->token().text();
    target->Read(7);
  }
  EXPECT_EQ(text, "Hello");
  EXPECT_EQ(events.front(), v1::GenerateResponse::kStarted);
  EXPECT_EQ(events.back(), v1::GenerateResponse::kFinished);
  EXPECT_EQ(events.size(), 7u);
  EXPECT_EQ(event.kind, Kind::kEnd);
  EXPECT_EQ(event.call, 7);
  EXPECT_TRUE(event.status.ok());
}

TEST_F(GrpcTargetTest, RunsManyCallsAtATimeAndReusesTheirNumbers) {
  const auto target = Connect();
  for (int round = 0; round < 2; ++round) {
    for (int32_t call = 0; call < 20; ++call) {
      target->StartTurn(call, Request(), {});
    }
    std::set<int32_t> ended;
    while (ended.size() < 20) {
      const Event event = Next(*target);
      ASSERT_NE(event.kind, Kind::kNone);
      if (event.kind == Kind::kResponse) {
        target->Read(event.call);
      } else {
        EXPECT_TRUE(event.status.ok());
        EXPECT_TRUE(ended.insert(event.call).second);
      }
    }
  }
  EXPECT_EQ(server_->generate_requests().size(), 40u);
  EXPECT_EQ(target->connections(), 1);
}

TEST_F(GrpcTargetTest, ReturnsAtItsTimeWhenNothingHappens) {
  const auto target = Connect();
  const Nanos until = target->Now() + kNanosPerSecond / 50;
  EXPECT_EQ(target->Next(until).kind, Kind::kNone);
  EXPECT_GE(target->Now(), until);
  // A time that has passed: at once.
  EXPECT_EQ(target->Next(0).kind, Kind::kNone);
}

TEST_F(GrpcTargetTest, CancelEndsACall) {
  Hang();
  const auto target = Connect();
  target->StartTurn(0, Request(), {});
  target->Cancel(0);
  const Event end = Next(*target);
  EXPECT_EQ(end.kind, Kind::kEnd);
  EXPECT_TRUE(absl::IsCancelled(end.status));
}

TEST_F(GrpcTargetTest, ErrorsKeepTheServersReason) {
  server_->on_generate = [](grpc::ServerContext*, const v1::GenerateRequest&,
                            FakeService::Writer*) {
    return testing::FakeError(grpc::ABORTED, "busy", "SESSION_BUSY");
  };
  const auto target = Connect();
  target->StartTurn(0, Request(), {});
  const Event end = Next(*target);
  EXPECT_EQ(end.kind, Kind::kEnd);
  EXPECT_TRUE(absl::IsAborted(end.status));
  EXPECT_EQ(end.status.message(), "busy");
}

TEST_F(GrpcTargetTest, MakesAndDeletesSessionsUnderTheirHeader) {
  const auto target = Connect();
  target->CreateSession(0, "mine");
  EXPECT_TRUE(Next(*target).status.ok());
  EXPECT_EQ(server_->sessions().count("mine"), 1u);
  target->CreateSession(0, "mine");
  EXPECT_TRUE(absl::IsAlreadyExists(Next(*target).status));
  target->DeleteSession(0, "mine");
  EXPECT_TRUE(Next(*target).status.ok());
  EXPECT_TRUE(server_->sessions().empty());
  for (const auto& call : server_->calls()) {
    EXPECT_EQ(call.session_header, "mine") << call.method;
  }
}

TEST_F(GrpcTargetTest, MakesAConnectionWhenTheOthersAreFull) {
  Hang();
  const auto target = Connect(/*turns_per_connection=*/2);
  for (int32_t call = 0; call < 5; ++call) {
    target->StartTurn(call, Request(), {});
  }
  EXPECT_EQ(target->connections(), 3);
}

TEST_F(GrpcTargetTest, GivesSlowReadersConnectionsOfTheirOwn) {
  const auto target = Connect();
  target->StartTurn(0, Request(), {.slow_reader = true});
  EXPECT_EQ(target->connections(), 2);
  target->StartTurn(1, Request(), {.slow_reader = true});
  target->StartTurn(2, Request(), {});
  EXPECT_EQ(target->connections(), 2);
}

TEST_F(GrpcTargetTest, MayBeDestroyedWhileCallsRun) {
  Hang();
  {
    const auto target = Connect();
    for (int32_t call = 0; call < 3; ++call) {
      target->StartTurn(call, Request(), {});
    }
    while (hanging_ < 3) absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(hanging_, 3);
}

TEST_F(GrpcTargetTest, MayBeDestroyedWithEventsThatNobodyRead) {
  const auto target = Connect();
  target->StartTurn(0, Request(), {});
  target->StartTurn(1, Request(), {});
  EXPECT_EQ(Next(*target).kind, Kind::kResponse);
}

TEST(GrpcTargetErrors, AreThoseOfTheAddress) {
  GrpcTargetOptions options;
  options.channel.address = "nowhere";
  EXPECT_EQ(GrpcTarget::Create(options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace txl::bench
