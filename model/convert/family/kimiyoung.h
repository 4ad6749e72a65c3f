#pragma once

// The layers that the code bases after kimiyoung/transformer-xl share:
// layers.{l}.dec_attn.* and .pos_ff.CoreNet.*, relative positions as sinusoids
// (attn_type 0) or learned tables (attn_type 1).
#include <string>

#include "model/convert/family/plan_builder.h"

namespace txl {
// Plans all layers, u and v, and pos.inv_freq from the tensors whose names
// start with `prefix` ("" or "transformer."), and sets n_layer, n_head, d_head,
// d_model, d_inner and pos from the weights. u and v may stand once for all
// layers, in each layer, or both when equal.
void PlanKptTrunk(const std::string& prefix, PlanBuilder& builder);

// pos.inv_freq [d_model / 2] from tensor `name`, when it is there; one that is
// rounded to 16 bits is left out.
void PlanInverseFrequencies(const std::string& name, int64_t d_model,
                            PlanBuilder& builder);

}  // namespace txl
