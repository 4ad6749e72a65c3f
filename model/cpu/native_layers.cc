#include "model/cpu/native_layers.h"

#include <algorithm>

namespace txl {
namespace {

RowActivation ToRowActivation(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return RowActivation::kNone;
    case Activation::kRelu:
      return RowActivation::kRelu;
    case Activation::kGeluTanh:
      return RowActivation::kGeluTanh;
  }
  return RowActivation::kNone;
}

const float* DataOrNull(const AlignedBuffer<float>& buffer) {
  return buffer.size() == 0 ? nullptr : buffer.data();
}

}  // namespace

NativeLayers::NativeLayers(const ModelConfig& config,
                           const NativeWeights& weights, NativeArena& arena,
                           int64_t max_rows, int workers)
    : config_(config),
      weights_(weights),
      arena_(arena),
      attention_(arena, weights.distances, workers),
      max_rows_(max_rows),
      width_(config.n_head * config.d_head),
      stride_(RoundUp(config.d_model, kPanel)),
      qkv_stride_(RoundUp(3 * width_, kPanel)),
      inner_stride_(RoundUp(config.d_inner, kPanel)),
      hidden_(max_rows * stride_),
      normed_(max_rows * stride_),
      sum_(max_rows * stride_),
      qkv_(max_rows * qkv_stride_),
      attended_(max_rows * RoundUp(width_, kPanel)),
      inner_(max_rows * inner_stride_) {}

void NativeLayers::Run(const std::vector<NativeRun>& runs, ThreadPool& pool) {
  rows_ = runs.back().first_row + runs.back().rows;
  const std::vector<NativeRun> pieces = CutRuns(runs);
  for (int64_t layer = 0; layer < config_.n_layer; ++layer) {
    RunLayer(layer, pieces, pool);
  }
}

void NativeLayers::RunLayer(int64_t index, const std::vector<NativeRun>& runs,
                            ThreadPool& pool) {
  const NativeLayer& layer = weights_.layers[index];
  if (config_.norm == NormPlacement::kPre) {
    Normalize(layer.ln1, hidden_.data(), normed_.data(), pool);
    Attend(index, runs, normed_.data(), pool);
    Normalize(layer.ln2, sum_.data(), normed_.data(), pool);
    FeedForward(layer, normed_.data(), sum_.data(), hidden_.data(), pool);
    return;
  }
  Attend(index, runs, hidden_.data(), pool);
  Normalize(layer.ln1, sum_.data(), normed_.data(), pool);
  FeedForward(layer, normed_.data(), normed_.data(), sum_.data(), pool);
  Normalize(layer.ln2, sum_.data(), hidden_.data(), pool);
}

// sum_ = hidden_ + attention of x.
void NativeLayers::Attend(int64_t index, const std::vector<NativeRun>& runs,
                          const float* x, ThreadPool& pool) {
  const NativeLayer& layer = weights_.layers[index];
  DeriveRows(layer, {x, stride_}, rows_, pool);
  pool.Run(static_cast<int64_t>(runs.size()), [&](int64_t i, int) {
    const NativeRun& run = runs[i];
    for (int64_t r = 0; r < run.rows; ++r) {
      const int64_t row = run.first_row + r;
      const float* qkv = qkv_.data() + row * qkv_stride_;
      std::copy_n(x + row * stride_, config_.d_model,
                  arena_.Row(run.slot, index, run.position + r));
      arena_.WriteDerived(run.slot, index, run.position + r, qkv + width_,
                          qkv + 2 * width_);
    }
  });
  const int64_t attended_stride = RoundUp(width_, kPanel);
  attention_.Run(layer, index, runs,
                 {qkv_.data(), qkv_stride_, attended_.data(), attended_stride},
                 pool);
  ApplyLinear({&layer.wo, DataOrNull(layer.bo)},
              {rows_,
               {attended_.data(), attended_stride},
               {hidden_.data(), stride_},
               sum_.data(),
               stride_},
              pool);
}

void NativeLayers::FeedForward(const NativeLayer& layer, const float* x,
                               const float* residual, float* out,
                               ThreadPool& pool) {
  ApplyLinear(
      {&layer.ff_w1, DataOrNull(layer.ff_b1), ToRowActivation(config_.act)},
      {rows_, {x, stride_}, {}, inner_.data(), inner_stride_}, pool);
  ApplyLinear({&layer.ff_w2, DataOrNull(layer.ff_b2),
               ToRowActivation(config_.ff_out_act)},
              {rows_,
               {inner_.data(), inner_stride_},
               {residual, stride_},
               out,
               stride_},
              pool);
}

void NativeLayers::Normalize(const NativeNorm& norm, const float* x, float* out,
                             ThreadPool& pool) {
  const float eps = static_cast<float>(config_.ln_eps);
  // A few rows are done sooner than other threads are woken.
  constexpr int64_t kRowsPerTile = 8;
  const int64_t tiles = (rows_ + kRowsPerTile - 1) / kRowsPerTile;
  pool.Run(tiles, [&](int64_t tile, int) {
    const int64_t end = std::min(rows_, (tile + 1) * kRowsPerTile);
    for (int64_t r = tile * kRowsPerTile; r < end; ++r) {
      NormalizeRow(x + r * stride_, config_.d_model, norm.g.data(),
                   norm.b.data(), eps, out + r * stride_);
    }
  });
}

// Queries, keys and values of rows x into qkv_.
void NativeLayers::DeriveRows(const NativeLayer& layer, RowBlock x,
                              int64_t rows, ThreadPool& pool) {
  ApplyLinear({&layer.qkv, DataOrNull(layer.qkv_bias)},
              {rows, x, {}, qkv_.data(), qkv_stride_}, pool);
}

void NativeLayers::WriteRows(int32_t slot, int64_t layer, int64_t position,
                             const float* rows, int64_t count,
                             ThreadPool& pool) {
  for (int64_t done = 0; done < count; done += max_rows_) {
    const int64_t now = std::min(max_rows_, count - done);
    const float* x = rows + done * config_.d_model;
    DeriveRows(weights_.layers[layer], {x, config_.d_model}, now, pool);
    pool.Run(now, [&](int64_t r, int) {
      const int64_t t = position + done + r;
      const float* qkv = qkv_.data() + r * qkv_stride_;
      std::copy_n(x + r * config_.d_model, config_.d_model,
                  arena_.Row(slot, layer, t));
      arena_.WriteDerived(slot, layer, t, qkv + width_, qkv + 2 * width_);
    });
  }
}

void NativeLayers::WriteStartRows(int32_t slot, ThreadPool& pool) {
  const RingGeometry& ring = arena_.ring();
  for (int64_t index = 0; index < config_.n_layer; ++index) {
    const NativeLayer& layer = weights_.layers[index];
    float* row = sum_.data();
    std::fill_n(row, stride_, 0.0f);
    if (config_.norm == NormPlacement::kPre) {
      NormalizeRow(row, config_.d_model, layer.ln1.g.data(), layer.ln1.b.data(),
                   static_cast<float>(config_.ln_eps), row);
    }
    DeriveRows(layer, {row, stride_}, 1, pool);
    pool.Run(ring.mem_len, [&](int64_t i, int) {
      const int64_t t = ring.first_position() + i;
      std::copy_n(row, config_.d_model, arena_.Row(slot, index, t));
      arena_.WriteDerived(slot, index, t, qkv_.data() + width_,
                          qkv_.data() + 2 * width_);
    });
  }
}

}  // namespace txl
