#include "server/scheduler/turn_errors.h"

#include <string>

#include "gtest/gtest.h"
#include "server/base/error.h"

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

}  // namespace
}  // namespace txl
