#include "server/engine/sound_step.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"
#include "model/cpu/native_weights.h"
#include "model/step/model_step.h"
#include "model/step/self_test_run.h"
#include "model/torch/torch_step.h"
#include "server/base/log.h"
#include "server/engine/device_name.h"

namespace txl {

absl::StatusOr<ServingStep> FirstSoundStep(
    const std::vector<StepAttempt>& attempts,
    absl::FunctionRef<absl::Status(const ServingStep&)> test,
    SelfTestReport* report) {
  using Clock = std::chrono::steady_clock;
  *report = SelfTestReport();
  for (const StepAttempt& attempt : attempts) {
    TXL_ASSIGN_OR_RETURN(ServingStep serving, attempt.build());
    if (report->step.empty()) report->step = serving.step->identity().kernel;
    if (!attempt.tested) return serving;
    const Clock::time_point start = Clock::now();
    const absl::Status verdict = test(serving);
    report->seconds +=
        std::chrono::duration<double>(Clock::now() - start).count();
    if (verdict.ok()) {
      Log(LogSeverity::kInfo, "self_test",
          {{"device", serving.facts.device},
           {"kernel", serving.step->identity().kernel},
           {"seconds", report->seconds}});
      if (report->result == SelfTestResult::kNotRun) {
        report->result = SelfTestResult::kPassed;
      }
      return serving;
    }
    if (verdict.code() == absl::StatusCode::kResourceExhausted) return verdict;
    report->result = SelfTestResult::kFellBack;
    report->objection = std::string(verdict.message());
    Log(LogSeverity::kError, "self_test",
        {{"device", serving.facts.device},
         {"kernel", serving.step->identity().kernel},
         {"refused", report->objection}});
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "self-test: the step differs from the reference and no safer one takes "
      "these options: ",
      report->objection));
}

std::vector<std::string> NextVectorTargets(
    const std::string& current, const std::vector<std::string>& all) {
  const auto at = std::find(all.begin(), all.end(), current);
  if (at == all.end()) return {};
  return {at + 1, all.end()};
}

absl::StatusOr<SelfTestDeviation> TryBesideTorch(const ModelConfig& config,
                                                 const Weights& weights,
                                                 const NativeFormats& formats,
                                                 SamplingStep& step,
                                                 const SelfTestLimits& limits) {
  SelfTestDeviation deviation;
  TXL_RETURN_IF_ERROR(CatchDeviceErrors("self-test", [&]() -> absl::Status {
    const std::vector<SelfTestSession> sessions =
        SelfTestSessions(BinsOf(config), limits.slots);
    TorchStepOptions options;
    options.slots = static_cast<int32_t>(sessions.size());
    options.spare_rows = kSelfTestRows;
    // All rows in one product: weights are read once.
    options.row_tile = SelfTestRows(sessions);
    TXL_ASSIGN_OR_RETURN(
        const std::unique_ptr<TorchStep> reference,
        TorchStep::Create(config, RoundedWeights(config, weights, formats),
                          options));
    TXL_ASSIGN_OR_RETURN(deviation,
                         TrySelfTest(step, *reference, BinsOf(config), limits));
    return absl::OkStatus();
  }));
  return deviation;
}

}  // namespace txl
