#pragma once

// Which of several steps serves: the first one that a self-test finds sound.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/step/sampling_step.h"
#include "model/step/self_test.h"
#include "server/base/self_test_report.h"
#include "server/engine/step_builder.h"

namespace txl {

// A step as runners take it; BuiltStep's facts.
struct ServingStep {
  std::unique_ptr<SamplingStep> step;
  bool on_host = false;  // it samples on the host
  BuiltStep facts;       // without a step
};

struct StepAttempt {
  // Errors as LoadStepRunner; no exception.
  std::function<absl::StatusOr<ServingStep>()> build;
  bool tested = true;
};

// Builds one after the other, each when the one before it is gone, until `test`
// has no objection; verdicts are logged, and `report` has them, whatever comes
// of it. An error of building ends it, and so does ResourceExhausted of a test.
// FailedPrecondition with the last objection when none is left. REQUIRES: there
// is an attempt.
absl::StatusOr<ServingStep> FirstSoundStep(
    const std::vector<StepAttempt>& attempts,
    absl::FunctionRef<absl::Status(const ServingStep&)> test,
    SelfTestReport* report);

// The vector targets behind `current`, best first, of `all` in that order: what
// is left to try where a step that runs with it is not sound.
std::vector<std::string> NextVectorTargets(const std::string& current,
                                           const std::vector<std::string>& all);

// The self-test of a step (model/step/self_test.h) with LibTorch's step on the
// CPU as the reference: other code, from the same tensors, which it shares but
// for those of 4 bits (RoundedWeights).

struct ModelConfig;
struct NativeFormats;
struct Weights;

// `weights`: float32 on the CPU, of the model that the step serves in these
// formats. The reference has one slot while this runs. Errors: those of
// TrySelfTest; ResourceExhausted and Internal for what the devices threw.
absl::StatusOr<SelfTestDeviation> TryBesideTorch(const ModelConfig& config,
                                                 const Weights& weights,
                                                 const NativeFormats& formats,
                                                 SamplingStep& step,
                                                 const SelfTestLimits& limits);

}  // namespace txl
