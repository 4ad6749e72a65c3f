#pragma once

// Golden weights as variables of kimiyoung's TensorFlow model.

#include <map>
#include <string>

#include "tests/model/convert/family/golden_weights.h"

namespace txl {

// The layers, u and v: kernels [in, out], the two LayerNorms of layer l at
// norms[2l] and norms[2l + 1] ("SCOPE/LayerNorm").
std::map<std::string, Values> TensorFlowTrunk(
    const GoldenWeights& golden, bool untie_r,
    const std::vector<std::string>& norms);

// "transformer/layer_0/rel_attn/LayerNorm", ".../ff/LayerNorm", ...
std::vector<std::string> ContribNorms(const GoldenWeights& golden);

// Adam's slots of every variable, and the step counters.
void AddTrainingState(std::map<std::string, Values>& variables);

NativeCheckpoint TensorFlowCheckpoint(
    const std::map<std::string, Values>& variables);

}  // namespace txl
