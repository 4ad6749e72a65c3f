#pragma once

// One embedding table and one output matrix with a bias, without cutoffs.

#include <string>

#include "model/convert/family/plan_builder.h"

namespace txl {

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
