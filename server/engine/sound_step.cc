#include "server/engine/sound_step.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/log.h"

namespace txl {

absl::StatusOr<SoundStep> FirstSoundStep(
    const std::vector<StepAttempt>& attempts,
    absl::FunctionRef<absl::Status(const ServingStep&)> test) {
  using Clock = std::chrono::steady_clock;
  SelfTestReport report;
  for (const StepAttempt& attempt : attempts) {
    TXL_ASSIGN_OR_RETURN(ServingStep serving, attempt.build());
    if (!attempt.tested) return SoundStep{std::move(serving), report};
    const Clock::time_point start = Clock::now();
    const absl::Status verdict = test(serving);
    report.seconds +=
        std::chrono::duration<double>(Clock::now() - start).count();
    if (verdict.ok()) {
      Log(LogSeverity::kInfo, "self_test",
          {{"device", serving.facts.device},
           {"kernel", serving.step->identity().kernel},
           {"seconds", report.seconds}});
      if (report.result == SelfTestResult::kNotRun) {
        report.result = SelfTestResult::kPassed;
      }
      return SoundStep{std::move(serving), report};
    }
    if (verdict.code() == absl::StatusCode::kResourceExhausted) return verdict;
    report.result = SelfTestResult::kFellBack;
    report.objection = std::string(verdict.message());
    Log(LogSeverity::kError, "self_test",
        {{"device", serving.facts.device},
         {"kernel", serving.step->identity().kernel},
         {"refused", report.objection}});
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "self-test: the step differs from the reference and no safer one takes "
      "these options: ",
      report.objection));
}

std::vector<std::string> NextVectorTargets(
    const std::string& current, const std::vector<std::string>& all) {
  const auto at = std::find(all.begin(), all.end(), current);
  if (at == all.end()) return {};
  return {at + 1, all.end()};
}

}  // namespace txl
