#pragma once

// All layers of a native step on the rows of one batch.

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "model/config/model_config.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/native_arena.h"
#include "model/cpu/native_attention.h"
#include "model/cpu/native_weights.h"
#include "model/cpu/thread_pool.h"

namespace txl {

// Thread-compatible. Run allocates nothing. The references outlive
// it.
class NativeLayers {
 public:
  NativeLayers(const ModelConfig& config, const NativeWeights& weights,
               NativeArena& arena, int64_t max_rows, int workers);

  // The rows of the batch: [max_rows, stride()]; embeddings before Run, the
  // last layer's outputs after it. Numbers from d on stay zero.
  float* hidden() { return hidden_.data(); }
  int64_t stride() const { return stride_; }

  // Feeds the rows and writes them into the rings.
  void Run(absl::Span<const NativeRun> runs, ThreadPool& pool);

  // Computes, in all layers, what derives from the stored rows of positions
  // position.. , at most max_rows of them. Nothing in absorbed form.
  void DeriveStored(int32_t slot, int64_t position, int64_t count,
                    ThreadPool& pool);
  // The zero start: every position, those that are yet to be fed too, has the
  // row of a zero input.
  void WriteStartRows(int32_t slot, ThreadPool& pool);

 private:
  void RunLayer(int64_t index, absl::Span<const NativeRun> runs,
                ThreadPool& pool);
  void Attend(int64_t index, absl::Span<const NativeRun> runs, const float* x,
              ThreadPool& pool);
  void DeriveRows(int64_t index, absl::Span<const NativeRun> runs, int64_t rows,
                  ThreadPool& pool);
  void FeedForward(const NativeLayer& layer, const float* x,
                   const float* residual, float* out, ThreadPool& pool);
  void Normalize(const NativeNorm& norm, const float* x, float* out,
                 ThreadPool& pool);
  void WidenStored(int32_t slot, int64_t layer, int64_t position,
                   int64_t count);
  // Stores rows of x at the runs' positions and derives what the form needs.
  void StoreRows(int64_t index, absl::Span<const NativeRun> runs,
                 const float* x, int64_t rows, ThreadPool& pool);

  const ModelConfig& config_;
  const NativeWeights& weights_;
  NativeArena& arena_;
  NativeAttention attention_;
  const int64_t max_rows_;
  const int64_t width_;             // H D
  const int64_t stride_;            // RoundUp(d, kPanel)
  const int64_t query_stride_;      // RoundUp(H D, kPanel)
  const int64_t key_value_stride_;  // RoundUp(2 H D, kPanel)
  const int64_t inner_stride_;
  int64_t rows_ = 0;                            // of this Run
  std::vector<NativeRun> pieces_;               // of at most run_rows() rows
  AlignedBuffer<float> hidden_, normed_, sum_;  // [max_rows, stride]
  AlignedBuffer<float> stored_;  // [max_rows, stride]: rows as memory has them
  AlignedBuffer<float> queries_, attended_;  // [max_rows, query_stride]
  AlignedBuffer<float> key_values_;          // [max_rows, key_value_stride]
  AlignedBuffer<float> inner_;               // [max_rows, inner_stride]
  IntegerRows integers_;                     // of the product that runs
};

}  // namespace txl
