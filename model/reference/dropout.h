#pragma once

// Dropout (Srivastava et al. 2014) whose masks are a function of (seed, step,
// number of the call, element): the same for any number of threads and after a
// resume, with no generator state to save. LibTorch's own CPU dropout is
// sequential and would take most of a training step.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace txl {

// One forward pass's masks. Not thread-safe.
class DropoutStream {
 public:
  DropoutStream(uint64_t seed, uint64_t step);

  // x with each element zeroed with probability p, else scaled by 1 / (1 - p).
  // 0 <= p < 1; 0 returns x itself and consumes nothing.
  at::Tensor Apply(const at::Tensor& x, double p);

 private:
  uint64_t key_;
  uint64_t calls_ = 0;
};

// What a forward pass may need beside tokens and memory.
struct ForwardOptions {
  double dropout = 0;            // on hidden states, as the paper's code
  double attention_dropout = 0;  // on attention probabilities
  // Where dropout's masks come from; required when one of them is > 0.
  DropoutStream* dropout_stream = nullptr;
  // [batch, q] int64, of a model with beat positions, training or not.
  at::Tensor ticks = {};
};

}  // namespace txl
