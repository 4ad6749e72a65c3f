#include "server/engine/step_builder.h"

#include <ATen/core/Tensor.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/base/host_memory.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"
#include "model/cpu/native_step.h"
#include "model/cpu/vector_target.h"
#include "model/step/model_step.h"
#include "model/torch/torch_step.h"
#include "server/engine/device_name.h"

namespace txl {
namespace {

absl::StatusOr<NumberFormat> ParseFormat(absl::string_view option,
                                         absl::Span<const NamedFormat> formats,
                                         const std::string& name) {
  const std::optional<NumberFormat> format = FindFormat(formats, name);
  if (format.has_value()) return *format;
  return absl::InvalidArgumentError(absl::StrCat(
      option, ": \"", name, "\" is not one of ", JoinNames(formats)));
}

absl::StatusOr<Products> ParseProducts(const std::string& name) {
  const std::optional<Products> products = FindProducts(name);
  if (products.has_value()) return *products;
  return absl::InvalidArgumentError(
      absl::StrCat("products: \"", name, "\" is not one of ",
                   absl::StrJoin(ProductNames(), ", ")));
}

bool UseNative(const at::Tensor& weight, const std::string& step) {
  if (step != "auto") return step == "native";
  return weight.is_cpu() && weight.scalar_type() == at::kFloat;
}

// What is left where the weights are.
std::optional<int64_t> AvailableBytes(const at::Tensor& weight) {
  if (weight.is_cpu()) return AvailableHostBytes();
  if (weight.is_cuda()) return FreeDeviceBytes(weight.device().index());
  return std::nullopt;
}

// SlotCount for a step on the CPU or of LibTorch, at most max_rows: more slots
// than rows could not decode in one step.
absl::StatusOr<int32_t> CappedSlotCount(int64_t bytes_per_slot,
                                        const Weights& weights,
                                        const StepRunnerOptions& options) {
  StepRunnerOptions room = options;
  if (room.slot_bytes == 0) {
    room.slot_bytes = UsualSlotBytes(AvailableBytes(weights.layers.at(0).wq),
                                     weights.Bytes());
  }
  return SlotCount(bytes_per_slot, options.max_rows, room);
}

absl::StatusOr<BuiltStep> BuildNative(const ModelConfig& config,
                                      const Weights& weights,
                                      const std::string& fingerprint,
                                      const StepRunnerOptions& options) {
  BuiltStep built;
  built.weight_format = options.weights;
  NativeStepOptions native;
  TXL_ASSIGN_OR_RETURN(native.formats, ParseFormats(options));
  built.form = FormName(ResolveForm(config, native.formats));
  TXL_ASSIGN_OR_RETURN(
      built.slots,
      CappedSlotCount(
          NativeStepSlotBytes(config, options.spare_rows, native.formats),
          weights, options));
  native.slots = built.slots;
  native.spare_rows = options.spare_rows;
  native.max_rows = options.max_rows;
  native.threads = options.threads;
  native.fingerprint = fingerprint;
  TXL_ASSIGN_OR_RETURN(built.step, CreateNativeStep(config, weights, native));
  return built;
}

absl::Status CheckTorchOptions(const StepRunnerOptions& options) {
  if (options.weights != "f32" || options.memory != "f32" ||
      options.derived != "f32" || options.products != "float") {
    return absl::InvalidArgumentError(
        "weights, memory, derived, products: the torch step keeps f32");
  }
  TXL_ASSIGN_OR_RETURN(const auto form, ParseForm(options.form));
  if (form == AttentionForm::kProjected) {
    return absl::InvalidArgumentError("form: the torch step is absorbed");
  }
  return absl::OkStatus();
}

absl::StatusOr<BuiltStep> BuildTorch(const ModelConfig& config,
                                     const Weights& weights,
                                     const std::string& fingerprint,
                                     const StepRunnerOptions& options) {
  TXL_RETURN_IF_ERROR(CheckTorchOptions(options));
  BuiltStep built;
  built.form = "absorbed";
  const bool is_double = weights.layers.at(0).wq.scalar_type() == at::kDouble;
  built.weight_format = is_double ? "f64" : "f32";
  const int64_t element_bytes = weights.layers.at(0).wq.element_size();
  TXL_ASSIGN_OR_RETURN(
      built.slots,
      CappedSlotCount(TorchSlotBytes(config, options.spare_rows, element_bytes),
                      weights, options));
  TorchStepOptions torch;
  torch.slots = built.slots;
  torch.spare_rows = options.spare_rows;
  torch.fingerprint = fingerprint;
  TXL_ASSIGN_OR_RETURN(built.step, TorchStep::Create(config, weights, torch));
  return built;
}

}  // namespace

absl::Status CheckStepOptions(const StepRunnerOptions& options) {
  if (options.slots < 0) {
    return absl::InvalidArgumentError("slots: must not be negative");
  }
  if (options.slot_bytes < 0) {
    return absl::InvalidArgumentError("slot memory: must not be negative");
  }
  // 0 slots stand for as many as fit.
  TXL_RETURN_IF_ERROR(
      CheckSlots(std::max(1, options.slots), options.spare_rows));
  if (options.max_rows < 1) {
    return absl::InvalidArgumentError("max_rows: must be at least 1");
  }
  if (options.step != "auto" && options.step != "native" &&
      options.step != "torch") {
    return absl::InvalidArgumentError(absl::StrCat(
        "step: \"", options.step, "\" is not one of auto, native, torch"));
  }
  if (options.threads < 1) {
    return absl::InvalidArgumentError("threads: must be at least 1");
  }
  if (options.step == "torch") TXL_RETURN_IF_ERROR(CheckTorchOptions(options));
  return CheckVectorTarget(options.vector_target);
}

absl::StatusOr<int32_t> SlotCount(int64_t bytes_per_slot, int64_t most,
                                  const StepRunnerOptions& options) {
  if (options.slots > 0) return options.slots;
  const int64_t fit = options.slot_bytes / bytes_per_slot;
  if (fit < 1) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "slot memory: ", options.slot_bytes,
        " bytes hold no slot; one of this model takes ", bytes_per_slot));
  }
  return static_cast<int32_t>(std::min(fit, most));
}

absl::StatusOr<NumberFormat> ParseWeightFormat(const std::string& name) {
  return ParseFormat("weights", kWeightFormats, name);
}

absl::StatusOr<NumberFormat> ParseRowFormat(absl::string_view option,
                                            const std::string& name) {
  return ParseFormat(option, kRowFormats, name);
}

absl::StatusOr<std::optional<AttentionForm>> ParseForm(
    const std::string& name) {
  const std::optional<AttentionForm> form = FindForm(name);
  if (form.has_value() || name == "auto") return form;
  return absl::InvalidArgumentError(absl::StrCat(
      "form: \"", name, "\" is not one of auto, projected, absorbed"));
}

absl::StatusOr<NativeFormats> ParseFormats(const StepRunnerOptions& options) {
  NativeFormats formats;
  TXL_ASSIGN_OR_RETURN(formats.weights, ParseWeightFormat(options.weights));
  TXL_ASSIGN_OR_RETURN(formats.memory,
                       ParseRowFormat("memory", options.memory));
  TXL_ASSIGN_OR_RETURN(formats.derived,
                       ParseRowFormat("derived", options.derived));
  TXL_ASSIGN_OR_RETURN(formats.form, ParseForm(options.form));
  TXL_ASSIGN_OR_RETURN(formats.products, ParseProducts(options.products));
  if (formats.products == Products::kInteger &&
      !AreWholeNumbers(formats.weights)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "products: int8 needs weights of int8 or int4, not ", options.weights));
  }
  return formats;
}

absl::StatusOr<BuiltStep> BuildStep(const ModelConfig& config,
                                    const Weights& weights,
                                    const std::string& fingerprint,
                                    const StepRunnerOptions& options) {
  const at::Tensor& weight = weights.layers.at(0).wq;
  absl::StatusOr<BuiltStep> built =
      UseNative(weight, options.step)
          ? BuildNative(config, weights, fingerprint, options)
          : BuildTorch(config, weights, fingerprint, options);
  if (built.ok()) built->device = DeviceName(weight.device());
  return built;
}

}  // namespace txl
