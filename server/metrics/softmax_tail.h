#pragma once

// What became of the clusters of an adaptive softmax (arXiv:1609.04309), of
// which a step evaluates only those that a result can depend on
// (model/sampling/distribution.h).

#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace txl {

// One cluster. computed + skipped = distributions that were wanted of it.
struct SoftmaxTail {
  int64_t computed = 0;  // the cluster's words were evaluated
  int64_t skipped = 0;   // nobody needed them
};

// One per cluster, in the order of the vocabulary; none: a plain softmax, or
// no step yet. Models have three or so, and a step shall take no memory.
using SoftmaxTails = absl::InlinedVector<SoftmaxTail, 4>;

}  // namespace txl
