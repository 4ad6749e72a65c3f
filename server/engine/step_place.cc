#include "server/engine/step_place.h"

#include "model/base/status_macros.h"
#include "server/engine/cuda_builder.h"
#include "server/engine/device_name.h"

namespace txl {

absl::StatusOr<StepPlace> ChooseStepPlace(const StepRunnerOptions& options) {
  return ChooseStepPlaceOf(options, NativeCudaDevices());
}

absl::StatusOr<StepPlace> ChooseStepPlaceOf(const StepRunnerOptions& options,
                                            int devices) {
  StepPlace place;
  const bool native =
      options.step == "native" || (options.step == "auto" && devices > 0);
  if (!native) {
    TXL_ASSIGN_OR_RETURN(place.weights, ResolveDevice(options.device));
    return place;
  }
  TXL_ASSIGN_OR_RETURN(
      const c10::Device device,
      ResolveDeviceOf(options.device, devices, "the native step"));
  if (device.is_cuda()) place.native_cuda = device.index();
  return place;
}

}  // namespace txl
