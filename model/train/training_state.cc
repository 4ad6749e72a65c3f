#include "model/train/training_state.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/safetensors.h"

namespace txl {
namespace {

constexpr char kFormat[] = "txl-training-1";

std::string MemoryName(size_t layer) { return absl::StrCat("memory.", layer); }

// Everything that is restored in place, under its name in the file.
std::vector<std::pair<std::string, at::Tensor>> Restorable(
    const TrainingState& state) {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const auto& [name, tensor] : state.parameters) {
    all.emplace_back("weight." + name, tensor.detach());
  }
  for (const auto& entry : state.adam->State()) all.push_back(entry);
  return all;
}

std::string ProgressJson(const TrainingProgressState& progress) {
  return nlohmann::json{{"step", progress.step},
                        {"best_held_out", progress.best_held_out},
                        {"best_step", progress.best_step},
                        {"seconds", progress.seconds}}
      .dump();
}

absl::StatusOr<TrainingProgressState> ParseProgress(const std::string& text,
                                                    const std::string& path) {
  const nlohmann::json json =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto number = [&](const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_number();
  };
  if (!number("step") || !number("best_held_out") || !number("best_step") ||
      !number("seconds")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": metadata progress is incomplete"));
  }
  TrainingProgressState progress;
  progress.step = json["step"].get<int64_t>();
  progress.best_held_out = json["best_held_out"].get<double>();
  progress.best_step = json["best_step"].get<int64_t>();
  progress.seconds = json["seconds"].get<double>();
  return progress;
}

// The flags of `txl-model train` that make a setting of a run, one for each of
// its parts; else its own name.
std::vector<std::string> FlagsOf(const std::string& setting) {
  static const auto& flags =
      *new std::map<std::string, std::vector<std::string>>(
          {{"from", {"--from"}},
           {"n_layer", {"--layers"}},
           {"d_model", {"--d-model"}},
           {"n_head", {"--heads"}},
           {"d_head", {"--d-head"}},
           {"d_inner", {"--d-inner"}},
           {"streams", {"--streams"}},
           {"segment", {"--segment"}},
           {"memory", {"--mem-len"}},
           {"warmup", {"--warmup"}},
           {"lr", {"--lr", "--final-lr-share"}},
           {"beta", {"beta1", "--beta2"}},
           {"decay", {"--weight-decay"}},
           {"clip", {"--clip"}},
           {"dropout", {"--dropout", "--attention-dropout"}},
           {"held_out", {"--held-out"}},
           {"seed", {"--seed"}},
           {"bf16", {"--bf16"}}});
  const auto found = flags.find(setting);
  return found == flags.end() ? std::vector<std::string>{setting}
                              : found->second;
}

using Settings = std::map<std::string, std::string>;

void AddSetting(const std::string& name, absl::string_view value,
                Settings& settings) {
  const std::vector<std::string> flags = FlagsOf(name);
  const std::vector<std::string> parts =
      flags.size() == 1 ? std::vector<std::string>{std::string(value)}
                        : absl::StrSplit(value, absl::ByAnyChar("*,"));
  for (size_t i = 0; i < std::min(flags.size(), parts.size()); ++i) {
    settings[flags[i]] = parts[i];
  }
}

// A run's settings: the fields of its config.json, then name=value.
Settings SettingsOf(absl::string_view run) {
  Settings settings = {{"--from", "nothing"}};
  const size_t end = std::min(run.find("\n text="), run.size());
  const auto config = nlohmann::json::parse(run.substr(0, end), nullptr,
                                            /*allow_exceptions=*/false);
  if (config.is_object()) {
    for (const auto& [name, value] : config.items()) {
      AddSetting(name, value.dump(), settings);
    }
  }
  for (const absl::string_view word : absl::StrSplit(
           run.substr(end), absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    const std::pair<std::string, std::string> setting =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    AddSetting(setting.first, setting.second, settings);
  }
  return settings;
}

// "--lr 0.1, now 0.2; ..."; empty where `now` may go on from `before`. The
// number of steps is no difference: more may be wanted than at first. Nor is
// the share that is held out, where the same tokens are.
std::string Differences(absl::string_view before, absl::string_view now) {
  constexpr char kHeldOut[] = "--held-out";
  Settings old = SettingsOf(before);
  Settings fresh = SettingsOf(now);
  const bool same_text = old["text"] == fresh["text"];
  const bool same_share = old[kHeldOut].empty() ||  // of an earlier version
                          old[kHeldOut] == fresh[kHeldOut];
  std::vector<std::string> flags, others;
  for (const auto& [name, value] : fresh) {
    const std::string& was = old[name];
    if (was == value || name == "steps" || name == "text") continue;
    if (name == kHeldOut && (same_text || same_share)) continue;
    (absl::StartsWith(name, "--") ? flags : others)
        .push_back(absl::StrCat(name, " ", was.empty() ? "unsaid" : was,
                                ", now ", value));
  }
  if (!same_text && same_share) flags.push_back("another text");
  // Fields of config.json follow from flags.
  return absl::StrJoin(flags.empty() ? others : flags, "; ");
}

absl::Status CheckHeader(const TensorFile& file, const std::string& run,
                         const std::string& path) {
  const auto format = file.metadata.find("format");
  if (format == file.metadata.end() || format->second != kFormat ||
      !file.metadata.contains("run") || !file.metadata.contains("progress")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a training checkpoint"));
  }
  const std::string differences = Differences(file.metadata.at("run"), run);
  if (differences.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": belongs to a run with other settings: ", differences));
}

}  // namespace

namespace {

// One handle for all where all are equal, and not zero, as unused ones may be.
void TieIfEqual(const std::vector<at::Tensor*>& tensors) {
  const at::Tensor& first = *tensors.front();
  if (!first.defined() || first.eq(0).all().item<bool>()) return;
  for (const at::Tensor* tensor : tensors) {
    if (!tensor->defined() || !tensor->equal(first)) return;
  }
  for (at::Tensor* tensor : tensors) *tensor = first;
}

}  // namespace

std::vector<std::pair<std::string, at::Tensor>> MakeTrainable(
    const ModelConfig& config, Weights& weights) {
  std::vector<at::Tensor*> u, v, projections;
  for (LayerWeights& layer : weights.layers) {
    u.push_back(&layer.u);
    v.push_back(&layer.v);
  }
  for (EmbeddingBin& bin : weights.embedding) projections.push_back(&bin.proj);
  for (const auto& tied : {u, v, projections}) TieIfEqual(tied);
  for (int64_t b = 0; b < config.n_bins(); ++b) {
    if (config.tie_weight) weights.head[b].w = weights.embedding[b].w;
    if (b < static_cast<int64_t>(config.tie_projs.size()) &&
        config.tie_projs[b]) {
      weights.head[b].proj = weights.embedding[b].proj;
    }
  }
  std::vector<std::pair<std::string, at::Tensor>> leaves;
  std::set<const void*> seen;
  for (const auto& [name, tensor] : weights.Named()) {
    if (name == "pos.inv_freq") continue;  // a constant
    if (!seen.insert(tensor.unsafeGetTensorImpl()).second) continue;
    leaves.emplace_back(name, tensor);
    leaves.back().second.set_requires_grad(true);
  }
  return leaves;
}

absl::Status SaveTrainingState(const TrainingState& state,
                               const std::string& run,
                               const std::string& path) {
  TensorFile file;
  file.metadata = {{"format", kFormat},
                   {"run", run},
                   {"progress", ProgressJson(state.progress)}};
  for (const auto& [name, tensor] : Restorable(state)) {
    file.tensors[name] = tensor;
  }
  for (size_t l = 0; l < state.memory.layers.size(); ++l) {
    file.tensors[MemoryName(l)] = state.memory.layers[l];
  }
  return WriteTensorFile(path, file);
}

absl::Status LoadTrainingState(const std::string& path, const std::string& run,
                               TrainingState& state) {
  TXL_ASSIGN_OR_RETURN(const TensorFile file, ReadTensorFile(path));
  TXL_RETURN_IF_ERROR(CheckHeader(file, run, path));
  TXL_ASSIGN_OR_RETURN(const TrainingProgressState progress,
                       ParseProgress(file.metadata.at("progress"), path));
  const auto restorable = Restorable(state);
  for (const auto& [name, tensor] : restorable) {
    const auto stored = file.tensors.find(name);
    if (stored == file.tensors.end() ||
        stored->second.sizes() != tensor.sizes() ||
        stored->second.scalar_type() != tensor.scalar_type()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor ", name, " is missing or mis-shaped"));
    }
  }
  SegmentMemory memory;
  for (size_t l = 0; l < state.memory.layers.size(); ++l) {
    const auto stored = file.tensors.find(MemoryName(l));
    if (stored == file.tensors.end() || stored->second.dim() != 3 ||
        stored->second.size(2) != state.memory.layers[l].size(2)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tensor ", MemoryName(l), " is missing or mis-shaped"));
    }
    memory.layers.push_back(
        stored->second.to(state.memory.layers[l].options()));
  }
  for (const auto& [name, tensor] : restorable) {
    tensor.copy_(file.tensors.at(name));
  }
  state.memory = std::move(memory);
  state.progress = progress;
  return absl::OkStatus();
}

namespace {

at::ScalarType ScalarTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return at::kDouble;
    case DType::kF32:
      return at::kFloat;
    case DType::kF16:
      return at::kHalf;
    case DType::kBF16:
      return at::kBFloat16;
    case DType::kI64:
      return at::kLong;
    case DType::kI32:
      return at::kInt;
    case DType::kU8:
      break;
  }
  return at::kByte;
}

std::optional<DType> DTypeOf(at::ScalarType type) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                      DType::kI64, DType::kI32, DType::kU8}) {
    if (ScalarTypeOf(dtype) == type) return dtype;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<TensorFile> ReadTensorFile(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsReader> reader,
                       SafetensorsReader::Open(path));
  TensorFile file;
  file.metadata = reader->metadata();
  for (const auto& [name, info] : reader->tensors()) {
    at::Tensor tensor = at::empty(info.shape, ScalarTypeOf(info.dtype));
    const absl::Span<const uint8_t> bytes = reader->Bytes(info);
    if (!bytes.empty()) {
      std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
    }
    file.tensors.emplace(name, std::move(tensor));
  }
  return file;
}

absl::Status WriteTensorFile(const std::string& path, const TensorFile& file) {
  std::vector<at::Tensor> kept;  // keeps the bytes alive until written
  std::map<std::string, TensorBytes> out;
  for (const auto& [name, tensor] : file.tensors) {
    const std::optional<DType> dtype = DTypeOf(tensor.scalar_type());
    if (!dtype.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tensor ", name, ": dtype ",
          c10::toString(tensor.scalar_type()), " cannot be written"));
    }
    kept.push_back(tensor.detach().cpu().contiguous());
    const at::Tensor& plain = kept.back();
    out[name] = {
        *dtype, plain.sizes().vec(),
        absl::MakeConstSpan(static_cast<const uint8_t*>(plain.const_data_ptr()),
                            plain.nbytes())};
  }
  return WriteSafetensors(path, out, file.metadata);
}

}  // namespace txl
