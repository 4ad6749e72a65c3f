#include "model/reference/relative_position.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>

namespace txl {
namespace {

// f_i = base^(-2i/d) in the run's own precision, as the public code computes
// it: the exponent first, then the power, then the reciprocal.
at::Tensor ComputedFrequencies(const ModelConfig& config, int64_t count,
                               double exponent_step,
                               const at::TensorOptions& options) {
  const at::Tensor exponent = at::arange(count, options) * exponent_step /
                              static_cast<double>(config.d_model);
  return at::reciprocal(at::pow(at::Scalar(config.pos_base), exponent));
}

at::Tensor Distances(const ModelConfig& config, int64_t count,
                     const at::TensorOptions& options) {
  at::Tensor distance = at::arange(count, options);
  if (config.clamp_len.has_value()) {
    distance = distance.clamp_max(static_cast<double>(*config.clamp_len));
  }
  return distance;
}

}  // namespace

at::Tensor PositionEncoding(const ModelConfig& config, const Weights& weights,
                            int64_t count) {
  const at::TensorOptions options =
      weights.embedding.front().w.options().requires_grad(false);
  const at::Tensor distance = Distances(config, count, options).unsqueeze(1);
  if (config.pos == PositionKind::kSinInterleavedRaw) {
    const at::Tensor angle =
        distance * ComputedFrequencies(config, config.d_model, 2.0, options);
    const at::Tensor even =
        at::arange(config.d_model, options.dtype(at::kLong)).remainder(2).eq(0);
    return at::where(even, at::sin(angle), at::cos(angle));
  }
  const at::Tensor frequency =
      weights.inv_freq.defined()
          ? weights.inv_freq
          : ComputedFrequencies(config, config.d_model / 2, 2.0, options);
  const at::Tensor angle = distance * frequency;
  return at::cat({at::sin(angle), at::cos(angle)}, 1);
}

at::Tensor TableRows(const ModelConfig& config, const at::Tensor& table,
                     int64_t count) {
  // A clamp of c keeps the rows 0..c-1: one fewer than sinusoids have.
  int64_t farthest = table.size(0) - 1;
  if (config.clamp_len.has_value()) {
    farthest = std::min(farthest, std::max<int64_t>(*config.clamp_len - 1, 0));
  }
  const at::Tensor index =
      at::arange(count, table.options().dtype(at::kLong).requires_grad(false))
          .clamp_max(farthest);
  return table.index_select(0, index);
}

at::Tensor RelativeShift(const at::Tensor& x) {
  const int64_t q = x.size(-2);
  const int64_t keys = x.size(-1) - 1;
  // Row i of y starts at column q - i of row i of x: in the flat order that is
  // q + i * keys, so the rows of y lie back to back.
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = keys;
  return x.flatten(-2).narrow(-1, q, q * keys).unflatten(-1, {q, keys});
}

}  // namespace txl
