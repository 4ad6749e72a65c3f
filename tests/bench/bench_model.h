#pragma once

// The model that a benchmark runs: a model directory, or random weights of a
// shape.

#include <string>

#include "absl/status/statusor.h"
#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"

namespace txl {

struct BenchModelOptions {
  // A model directory, or a file config.json: random weights of that shape,
  // the same every time.
  std::string path;
  std::string device = "cpu";  // as ResolveDevice
  // Of random weights; in (0, 1), or 0: as it comes.
  double tail_share = 0;
};

struct BenchModel {
  std::string name;
  std::string fingerprint;
  ModelConfig config;
  Weights weights;
};

// Errors name the file, the device or the share.
absl::StatusOr<BenchModel> LoadBenchModel(const BenchModelOptions& options);

}  // namespace txl
