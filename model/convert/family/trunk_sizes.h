#pragma once

// The sizes of a model's layers, read from its tensors.

#include <cstdint>
#include <string>
#include <vector>

#include "model/convert/family/plan_builder.h"

namespace txl {

struct TrunkSizes {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t d_head = 0;
  int64_t d_model = 0;
  int64_t d_inner = 0;
  int64_t width() const { return heads * d_head; }
};

// Sets n_layer, n_head, d_head, d_model and d_inner from the weights. False,
// with an error in the table, when one is not in 1..2^20: products of a few of
// them fit int64 then.
bool SetTrunkSizes(const TrunkSizes& sizes, PlanBuilder& builder);

// Adds one layer's Q, K and V from rows that stand below each other,
// [3 * width, d_model] or, for biases, [3 * width]. `names`: of the three.
void AddFusedRows(int64_t layer, const std::vector<std::string>& names,
                  const StoredTensor& fused, PlanBuilder& builder);

// Whether the --spec of `input` says something about `field`, null included.
bool InSpec(const PlanInput& input, absl::string_view field);

// mem_len when neither spec nor checkpoint say it, with a line for the reader.
void AssumeMemory(int64_t rows, absl::string_view why, PlanBuilder& builder);

}  // namespace txl
