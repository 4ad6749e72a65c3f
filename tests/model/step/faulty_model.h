#pragma once

// A model that a step has read wrongly: what kernels with a mistake would
// compute, made by what they are given.

#include <ostream>
#include <vector>

#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"

namespace txl {

enum class ModelFault {
  kTermMissing,       // sums of queries lack their last quarter
  kSwappedHeads,      // the keys of two heads change places
  kWrongScale,        // scores are half as large again
  kNextDistance,      // positional keys are those of the next distance
  kShortWindow,       // the oldest visible row is not seen
  kDroppedBias,       // the first feed-forward layer's
  kDroppedNormBias,   // a norm's
  kTransposedMatrix,  // the values' projection, or what of it is square
  kOtherLayer,        // the last layer's output projection is the first's
  kRowOfZeros,        // one output of the second feed-forward layer
  kContentBias,       // u is taken for v and v for u
  kClusterRolled,     // words of the last bin are one place off
};
inline constexpr ModelFault kLastModelFault = ModelFault::kClusterRolled;

struct FaultyModel {
  ModelConfig config;
  Weights weights;  // shares what is not changed
};

std::vector<ModelFault> AllModelFaults();
const char* NameOf(ModelFault fault);
inline void PrintTo(ModelFault fault, std::ostream* out) {
  *out << NameOf(fault);
}

// REQUIRES: sinusoids of kSinConcat, 2 layers and 2 heads or more, a bias of
// the feed-forward layers.
FaultyModel MakeFaultyModel(const ModelConfig& config, const Weights& weights,
                            ModelFault fault);

}  // namespace txl
