#pragma once

// The canonical tensors that a ModelConfig implies: names, shapes, which may
// be left out because they are tied. Names and shapes are those of the golden
// data (matrices [out, in]).

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/checkpoint/safetensors.h"
#include "model/config/model_config.h"

namespace txl {

enum class Presence {
  kRequired,
  // Absent means not used (biases bq..bo, proj, pos.inv_freq, ...).
  kOptional,
  // May be left out: equals tied_to then; when present it must be equal to it
  // bit for bit.
  kTied,
};

struct CanonicalTensor {
  std::vector<int64_t> shape;  // -1: any size >= 1 (rows of rel_t and rel_s)
  Presence presence = Presence::kRequired;
  std::string tied_to;
};

// Every name that a model.safetensors of `config` may hold.
std::map<std::string, CanonicalTensor> CanonicalTensors(
    const ModelConfig& config);

// Numbers in the tensors that a file of `config` must hold, tied ones once; a
// position table counts with one row per visible distance.
int64_t RequiredParameters(const ModelConfig& config);

// Compares a file's table of contents with the canonical list: every tensor
// used exactly once; missing, unknown, mis-shaped or non-float tensors are
// errors naming tensor and file.
absl::Status CheckCanonicalTensors(
    const ModelConfig& config, const std::map<std::string, TensorInfo>& tensors,
    const std::string& path);

}  // namespace txl
