#pragma once

// Tiny state dicts in kimiyoung's naming, every number different, so that a
// test sees where each ended up.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/convert/family/family.h"
#include "tests/model/convert/family/stored_tensors.h"

namespace txl {

using TensorMap = std::map<std::string, StoredTensor>;

struct KptShape {
  int64_t vocab = 7, layers = 2, heads = 2, d_head = 3, d_model = 4,
          d_inner = 5;
  int64_t d_embed = 4;
  std::vector<int64_t> cutoffs;
  int64_t div_val = 1;
  std::vector<bool> tie_projs;  // empty: no bin is tied
};

// Layers, u, v and inv_freq, with `prefix` before each name.
TensorMap KptTrunkTensors(const KptShape& shape, const std::string& prefix);
// word_emb.* with `prefix`, crit.* without; output weights are views of the
// embeddings.
TensorMap KptHeadTensors(const KptShape& shape, const std::string& prefix);
// Both, without a prefix.
TensorMap KptTensors(const KptShape& shape);

// A copy with a storage of its own.
StoredTensor CopyOf(const StoredTensor& tensor);

// The values of a planned tensor, its pieces one after the other.
std::vector<float> ValuesOf(const ConversionPlan& plan,
                            const std::string& name);

}  // namespace txl
