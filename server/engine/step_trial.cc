#include "server/engine/step_trial.h"

#include <memory>
#include <utility>

#include "model/base/status_macros.h"
#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"
#include "model/cpu/native_weights.h"
#include "model/step/vocabulary_bins.h"
#include "model/torch/torch_model_step.h"
#include "model/torch/torch_step.h"
#include "server/engine/device_errors.h"

namespace txl {

absl::StatusOr<SelfTestDeviation> TryBesideTorch(const ModelConfig& config,
                                                 const Weights& weights,
                                                 const NativeFormats& formats,
                                                 SamplingStep& step,
                                                 const SelfTestLimits& limits) {
  SelfTestDeviation deviation;
  TXL_RETURN_IF_ERROR(CatchDeviceErrors("self-test", [&]() -> absl::Status {
    TorchStepOptions options;
    options.spare_rows = kSelfTestRows;
    TXL_ASSIGN_OR_RETURN(
        std::unique_ptr<TorchStep> torch,
        TorchStep::Create(config, RoundedWeights(config, weights, formats),
                          options));
    const std::unique_ptr<ModelStep> reference =
        AsModelStep(std::move(torch), BinsOf(config));
    TXL_ASSIGN_OR_RETURN(deviation,
                         TrySelfTest(step, *reference, BinsOf(config), limits));
    return absl::OkStatus();
  }));
  return deviation;
}

}  // namespace txl
