#pragma once

// Embedding and softmax of kimiyoung's TensorFlow model: one table
// (div_val 1) or one per bin, projections [width, d_model], one output matrix
// that is the embedding's.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/convert/family/plan_builder.h"

namespace txl {
// Plans emb.* and head.* and sets vocab_size, d_embed, cutoffs, div_val,
// tie_projs and emb_proj_bin0 from the weights. REQUIRES: d_model in 1..2^20.
void PlanTfAdaptive(int64_t d_model, PlanBuilder& builder);

// The layers of kimiyoung's TensorFlow model and of those built after it:
// transformer/layer_{l}/{rel_attn,ff}/*. Kernels are [in, out].

inline constexpr char kTfScope[] = "transformer/";

// Where a layer's two LayerNorms are: "SCOPE/LayerNorm", without "/gamma".
struct TfLayerNorms {
  std::string attention;
  std::string feed_forward;
};

// kTfScope "layer_{l}/".
std::string TfLayer(int64_t layer);

// Sets the sizes from the weights; false with an error in the table when one
// is out of range.
bool ReadTfSizes(PlanBuilder& builder, TrunkSizes& sizes);

// Plans all layers, u and v. `norms`: one entry per layer.
void PlanTfTrunk(const TrunkSizes& sizes,
                 const std::vector<TfLayerNorms>& norms, PlanBuilder& builder);

// Ignores what is not a variable of the model: variables outside kTfScope
// (global_step, beta1_power) and slots, which are named VARIABLE/SLOT (Adam).
void IgnoreTfTraining(PlanBuilder& builder);

// Fields that all of them share: post-norm, memory that starts as zeros.
void PlanTfFields(PlanBuilder& builder);

}  // namespace txl
