#pragma once

// How often an adaptive softmax meets a tail: for models with random weights
// that stand for trained ones in benchmarks.

#include "absl/status/status.h"
#include "model/checkpoint/weights.h"

namespace txl {

// Sets every cluster's bias to one value, so that the head's softmax gives all
// clusters together about `share` of the probability. Of n_0 words and C
// clusters with equal logits, bias b gives them C e^b / (n_0 + C e^b), which is
// solved for b. Words keep their biases; RandomWeights makes those 0.
// Errors: InvalidArgument when share is not in (0, 1) or there is no tail.
absl::Status SetTailShare(double share, Weights& weights);

}  // namespace txl
