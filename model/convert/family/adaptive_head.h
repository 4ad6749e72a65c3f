#pragma once

// Adaptive embedding and softmax in the naming of kimiyoung/transformer-xl:
// one table cut by cutoffs (div_val 1) or a table per bin, a projection per
// table, clusters in a softmax over bin 0.

#include <string>

#include "model/convert/family/plan_builder.h"

namespace txl {

// Names with {bin} left out: weight_prefix + bin + weight_suffix.
struct AdaptiveNames {
  std::string word_emb = "word_emb.";
  std::string weight_prefix = "crit.out_layers.";
  std::string weight_suffix = ".weight";
  std::string bias_prefix = "crit.out_layers.";
  std::string bias_suffix = ".bias";
  // Row C - b of the clusters is bin b (python index -b), not row b - 1.
  bool reversed_clusters = true;
};

// Plans emb.* and head.*; sets vocab_size, d_embed, cutoffs, div_val,
// emb_proj_bin0, tie_weight, tie_projs and head_bias as far as the weights show
// them. With one table and clusters the draft must know the cutoffs already;
// tie_weight and tie_projs of the draft decide about tensors stored twice.
// REQUIRES: d_model was set from the weights.
void PlanAdaptiveHead(const AdaptiveNames& names, PlanBuilder& builder);

// One embedding table and one output matrix with a bias, without cutoffs.

struct PlainHeadNames {
  std::string embedding;  // [V, d_model]
  std::string weight;     // [V, d_model], perhaps the embedding itself
  std::string bias;       // [V]
};

// Plans emb.0.w, head.0.w (unless it is the embedding's view) and head.0.b, and
// sets vocab_size, d_embed, cutoffs, tie_weight and head_bias from the weights.
// A tie_weight of the draft decides about an output matrix stored apart.
void PlanPlainHead(const PlainHeadNames& names, int64_t d_model,
                   PlanBuilder& builder);

}  // namespace txl
