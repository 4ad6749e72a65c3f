#include <memory>
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "model/sampling/sampler.h"
#include "server/base/error.h"
#include "server/scheduler/turn.h"
#include "server/session/session_store.h"
#include "tests/fakes/fake_clock.h"

namespace txl {
namespace {

void ExpectError(const absl::Status& status, absl::StatusCode code,
                 const std::string& reason, bool retry) {
  EXPECT_EQ(status.code(), code);
  EXPECT_EQ(GetErrorDetails(status).reason, reason);
  EXPECT_EQ(GetErrorDetails(status).retry.has_value(), retry) << reason;
}

TEST(TurnErrors, CarryTheCodesAndReasonsOfThePublicApi) {
  using Code = absl::StatusCode;
  const absl::Duration later = absl::Seconds(1);
  ExpectError(TurnCancelled(), Code::kCancelled, "CANCELLED", false);
  ExpectError(TurnDeadlineExceeded(), Code::kDeadlineExceeded,
              "DEADLINE_EXCEEDED", false);
  ExpectError(TurnTooLong(later), Code::kDeadlineExceeded, "DEADLINE_EXCEEDED",
              false);
  ExpectError(QueuedTooLong(later, later), Code::kResourceExhausted,
              "QUEUE_FULL", true);
  ExpectError(ClientTooSlow(), Code::kResourceExhausted, "CLIENT_TOO_SLOW",
              false);
  ExpectError(ServerDraining(), Code::kUnavailable, "DRAINING", false);
  ExpectError(QueueFull(later), Code::kResourceExhausted, "QUEUE_FULL", true);
  ExpectError(NoSessionMemory(later), Code::kResourceExhausted,
              "NO_SESSION_MEMORY", true);
  ExpectError(ResumeMismatch(), Code::kAborted, "RESUME_MISMATCH", false);
  ExpectError(StepFailed("x", absl::InternalError("y")), Code::kInternal,
              "STEP_FAILED", false);
}

TEST(TurnErrors, AFailedStepSaysWhatAndWhy) {
  EXPECT_EQ(StepFailed("the step failed", absl::InternalError("y")).message(),
            "the step failed: y");
}

TEST(TurnErrors, FieldsThatLeaveNoTokenAreTheClientsMistake) {
  const auto field = [](const SamplingParams& sampling) {
    return GetErrorDetails(RowFailed(sampling, NothingToSample())).field;
  };
  SamplingParams sampling;
  ExpectError(RowFailed(sampling, NothingToSample()),
              absl::StatusCode::kInternal, "STEP_FAILED", false);
  sampling.min_tokens = 1;
  EXPECT_EQ(field(sampling), "sampling.min_tokens");
  sampling.follow_kinds = true;
  EXPECT_EQ(field(sampling), "sampling.follow_kinds");
  sampling.allowed_token_ids = {3};
  EXPECT_EQ(field(sampling), "sampling.allowed_token_ids");
  ExpectError(RowFailed(sampling, NothingToSample()),
              absl::StatusCode::kInvalidArgument, "FIELD_INVALID", false);
  ExpectError(RowFailed(sampling, absl::InternalError("y")),
              absl::StatusCode::kInternal, "STEP_FAILED", false);
}

class TurnEndTest : public ::testing::Test {
 protected:
  TurnEndTest() {
    EXPECT_TRUE(store_.Create("a", std::nullopt).ok());
    turn_.lease = *store_.Acquire("a");
    turn_.cancel = std::make_shared<CancelToken>();
  }
  // `seconds` after the turn came; the longest turn has an hour.
  std::string Reason(int seconds) {
    const auto end = EndOf(turn_, absl::Seconds(100), absl::Hours(1),
                           absl::Seconds(100 + seconds));
    return end.has_value() ? GetErrorDetails(*end).reason : "";
  }

  FakeClock clock_;
  SessionStore store_{SessionStoreOptions(), &clock_};
  Turn turn_;
};

TEST_F(TurnEndTest, ATurnThatNobodyStopsGoesOn) { EXPECT_EQ(Reason(3599), ""); }

TEST_F(TurnEndTest, ACancelledTurnEndsAsItsClientSaid) {
  turn_.cancel->Cancel(CancelToken::Why::kCancelled);
  EXPECT_EQ(Reason(0), "CANCELLED");
  turn_.cancel = std::make_shared<CancelToken>();
  turn_.cancel->Cancel(CancelToken::Why::kDeadline);
  EXPECT_EQ(Reason(0), "DEADLINE_EXCEEDED");
}

TEST_F(TurnEndTest, ADeadlineEndsTheTurnWhenItHasCome) {
  turn_.deadline = absl::Seconds(105);
  EXPECT_EQ(Reason(4), "");
  EXPECT_EQ(Reason(5), "DEADLINE_EXCEEDED");
}

TEST_F(TurnEndTest, ATurnOfADeletedSessionEnds) {
  ASSERT_TRUE(store_.Delete("a").ok());
  EXPECT_EQ(Reason(0), "SESSION_DELETED");
}

TEST_F(TurnEndTest, TheLongestTurnEndsByTheServersSettingAndSaysSo) {
  EXPECT_EQ(Reason(3600), "DEADLINE_EXCEEDED");
  const auto end =
      EndOf(turn_, absl::ZeroDuration(), absl::Hours(1), absl::Hours(1));
  EXPECT_NE(end->message().find("longest_turn, 1h"), std::string::npos) << *end;
}

}  // namespace

}  // namespace txl
