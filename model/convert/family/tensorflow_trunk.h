#pragma once

// The layers of kimiyoung's TensorFlow model and of those built after it:
// transformer/layer_{l}/{rel_attn,ff}/*. Kernels are [in, out].

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/convert/family/trunk_sizes.h"

namespace txl {

inline constexpr char kTfScope[] = "transformer/";

// Where a layer's two LayerNorms are: "SCOPE/LayerNorm", without "/gamma".
struct TfLayerNorms {
  std::string attention;
  std::string feed_forward;
};

// kTfScope "layer_{l}/".
std::string TfLayer(int64_t layer);

// Sets the sizes from the weights; false with an error in the table when they
// are none.
bool ReadTfSizes(PlanBuilder& builder, TrunkSizes& sizes);

// Plans all layers, u and v. `norms`: one entry per layer.
void PlanTfTrunk(const TrunkSizes& sizes,
                 const std::vector<TfLayerNorms>& norms, PlanBuilder& builder);

// Ignores what is no variable of the model: variables outside kTfScope
// (global_step, beta1_power) and slots, which are named VARIABLE/SLOT (Adam).
void IgnoreTfTraining(PlanBuilder& builder);

// Fields that all of them share: post-norm, memory that starts as zeros.
void PlanTfFields(PlanBuilder& builder);

}  // namespace txl
