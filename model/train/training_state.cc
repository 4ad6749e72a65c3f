#include "model/train/training_state.h"

#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/train/tensor_file.h"

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

absl::Status CheckHeader(const TensorFile& file, const std::string& run,
                         const std::string& path) {
  const auto format = file.metadata.find("format");
  if (format == file.metadata.end() || format->second != kFormat ||
      !file.metadata.contains("run") || !file.metadata.contains("progress")) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a training checkpoint"));
  }
  if (file.metadata.at("run") != run) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": belongs to a run with other settings or another text: ",
        file.metadata.at("run"), " instead of ", run));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::pair<std::string, at::Tensor>> MakeTrainable(
    const ModelConfig& config, Weights& weights) {
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

}  // namespace txl
