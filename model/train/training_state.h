#pragma once

// What a training run is made of at a border between steps, in memory and as a
// file to resume from.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"
#include "model/reference/network.h"
#include "model/train/adam.h"

namespace txl {

struct TrainingProgressState {
  int64_t step = 0;          // finished steps
  double best_held_out = 0;  // nats per token; 0: none was measured
  int64_t best_step = 0;
  double seconds = 0;  // of training so far
};

// The unique leaves of `weights` by canonical name (a tied tensor under its
// first name), made to require grad. Tied members become one handle: those that
// the configuration ties, and those that the original code has once and our
// files have for every layer or bin (u, v, projections of the embedding), which
// are recognised by their equal values.
std::vector<std::pair<std::string, at::Tensor>> MakeTrainable(
    const ModelConfig& config, Weights& weights);

struct TrainingState {
  std::vector<std::pair<std::string, at::Tensor>> parameters;
  Adam* adam = nullptr;  // not owned
  SegmentMemory memory;  // of the training streams
  TrainingProgressState progress;
};

// `run` says what must be equal to resume (config, options, text) and how many
// steps there are, which may differ. Written atomically.
absl::Status SaveTrainingState(const TrainingState& state,
                               const std::string& run, const std::string& path);

// Copies the file's values into `state`. Errors: NotFound; InvalidArgument
// (not a checkpoint, of another run, of other shapes); `state` is then
// unchanged.
absl::Status LoadTrainingState(const std::string& path, const std::string& run,
                               TrainingState& state);

// LibTorch tensors in safetensors files: training checkpoints, and the token
// and log-probability files of `txl-model logprobs`.

struct TensorFile {
  std::map<std::string, at::Tensor> tensors;  // CPU, contiguous
  std::map<std::string, std::string> metadata;
};

// Reads every tensor (copied). Errors as SafetensorsReader::Open.
absl::StatusOr<TensorFile> ReadTensorFile(const std::string& path);

// Writes atomically, each tensor in its own dtype. Errors: InvalidArgument for
// a dtype that safetensors files of this project do not hold.
absl::Status WriteTensorFile(const std::string& path, const TensorFile& file);

}  // namespace txl
