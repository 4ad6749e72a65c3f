#pragma once

// Mean negative log-likelihood of a text: perplexity and bits per character.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "absl/types/span.h"
#include "model/reference/network.h"
#include "model/train/streams.h"

namespace txl {

struct Evaluation {
  double nats = 0;      // mean per token
  int64_t tokens = 0;   // that were predicted
  double bits() const;  // per token
  double perplexity() const;
};

struct EvaluationOptions {
  StreamShape shape = {8, 128};
  StreamCut cut = StreamCut::kWhole;
  // Called after every segment with the figures so far and the share of the
  // segments that are done; returning false ends the evaluation early.
  std::function<bool(const Evaluation& so_far, double share)> observer;
  // Called with each segment's mean loss, which has a gradient, before the
  // observer; may change the weights. Empty: no gradients are kept.
  std::function<void(const at::Tensor& loss)> learn;
};

// Feeds `ids` as parallel streams in segments with memory carried, each stream
// from the model's own initial memory.
Evaluation Evaluate(const ReferenceNetwork& network,
                    absl::Span<const int64_t> ids,
                    const EvaluationOptions& options);

}  // namespace txl
