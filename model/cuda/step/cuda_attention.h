#pragma once

// Attention of a step's rows in absorbed form: queries of every head in, values
// of every head out (docs/design/step.md).

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/rows.h"
#include "model/cuda/step/cuda_products.h"
#include "model/cuda/step/cuda_weights.h"

namespace txl::cuda {

// T: how weights are stored, M: stored rows; float, Bf16 or F16. Where both are
// the same half type and the device has room for it, scores and sums are made
// by tensor cores, with queries rounded to T; elsewhere with float32 queries.
//
// Thread-compatible; work is queued on `stream`. Every reference outlives it.
template <typename T, typename M>
class CudaAttention {
 public:
  // `buckets`: numbers of rows that Queue is called with.
  CudaAttention(const CudaWeights<T>& weights, int64_t window,
                const std::vector<int>& buckets, CudaProducts& products,
                Stream& stream);

  // q_n without biases: [rows, H, Dp], written before Queue.
  T* queries() { return queries_.data(); }

  // sum_j p_j Wv_n c_j (+ bv_n) of every head, at values(). The rows' own
  // positions are stored already.
  void Queue(const CudaLayer<T>& layer, const StepRows& rows,
             const Rings<M>& rings);
  const T* values() const { return values_.data(); }  // [rows, H, Dp]

 private:
  // Attention with absorbed queries and sums of type Q.
  template <typename Q>
  void QueueWith(const CudaLayer<T>& layer, const StepRows& rows,
                 const Rings<M>& rings, Array<Q>& absorbed, Array<Q>& sums);

  int Splits(int rows) const;

  const CudaShape shape_;
  const int64_t window_;
  CudaProducts& products_;
  Stream& stream_;
  const int processors_;
  const size_t shared_bytes_;  // the most that a block may have
  const bool by_tensor_cores_;
  Array<T> queries_;              // [rows, H, Dp]
  Array<float> position_scores_;  // [rows, H, distance_stride]
  // (q_n + u_n) Wk_n and sum_j p_j c_j, [rows, H, dp], in T or in float32.
  Array<T> absorbed_, attended_;
  Array<float> wide_absorbed_, wide_attended_;
  Array<float> partial_, maxima_, sums_;  // kernels/attention.h
  Array<T> values_;                       // [rows, H, Dp]
};

}  // namespace txl::cuda
