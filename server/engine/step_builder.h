#pragma once

// Which step a server's options mean, and how many slots it gets.

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "model/base/number_format.h"
#include "model/cpu/attention_form.h"
#include "model/cpu/native_weights.h"
#include "model/step/model_step.h"
#include "model/step/sampling_step.h"
#include "server/engine/runner_options.h"

namespace txl {

struct ModelConfig;
struct Weights;

struct BuiltStep {
  // One of the two.
  std::unique_ptr<ModelStep> step;
  std::unique_ptr<SamplingStep> sampling;
  int32_t slots = 0;
  std::string device;         // "cpu", "cuda:0"
  std::string form;           // "projected", "absorbed"
  std::string weight_format;  // "f32", ...
};

// InvalidArgument names the option that no step takes.
absl::Status CheckStepOptions(const StepRunnerOptions& options);

// The native step or LibTorch's, on the device and in the dtype that the
// weights have. Errors as LoadStepRunner.
absl::StatusOr<BuiltStep> BuildStep(const ModelConfig& config,
                                    const Weights& weights,
                                    const std::string& fingerprint,
                                    const StepRunnerOptions& options);

// Parts that steps have in common.

// Slots that `slot_bytes` bytes hold, at most `most`; options.slots where that
// says. ResourceExhausted when not one fits.
absl::StatusOr<int32_t> SlotCount(int64_t bytes_per_slot, int64_t most,
                                  const StepRunnerOptions& options);
absl::StatusOr<NumberFormat> ParseWeightFormat(const std::string& name);
absl::StatusOr<NumberFormat> ParseRowFormat(absl::string_view option,
                                            const std::string& name);
// The native step's: of weights, memory, derived and form.
absl::StatusOr<NativeFormats> ParseFormats(const StepRunnerOptions& options);
// Nothing: the model's cheaper form.
absl::StatusOr<std::optional<AttentionForm>> ParseForm(const std::string& name);

}  // namespace txl
