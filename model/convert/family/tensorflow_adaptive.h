#pragma once

// Embedding and softmax of kimiyoung's TensorFlow model: one table
// (div_val 1) or one per bin, projections [width, d_model], one output matrix
// that is the embedding's.

#include <cstdint>

#include "model/convert/family/plan_builder.h"

namespace txl {

// Plans emb.* and head.* and sets vocab_size, d_embed, cutoffs, div_val,
// tie_projs and emb_proj_bin0 from the weights. REQUIRES: d_model in 1..2^20.
void PlanTfAdaptive(int64_t d_model, PlanBuilder& builder);

}  // namespace txl
