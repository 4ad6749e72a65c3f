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
      query_stride_(RoundUp(width_, kPanel)),
      key_value_stride_(RoundUp(2 * width_, kPanel)),
      inner_stride_(RoundUp(config.d_inner, kPanel)),
      hidden_(max_rows * stride_),
      normed_(max_rows * stride_),
      sum_(max_rows * stride_),
      stored_(max_rows * stride_),
      queries_(max_rows * query_stride_),
      attended_(max_rows * query_stride_),
      inner_(max_rows * inner_stride_) {
  if (arena.shape().form == AttentionForm::kProjected) {
    key_values_ = AlignedBuffer<float>(max_rows * key_value_stride_);
  }
  if (weights.layers[0].wq.products() == Products::kInteger) {
    integers_.Reserve(max_rows,
                      std::max({stride_, query_stride_, inner_stride_}));
  }
  pieces_.reserve(max_rows);
}

void NativeLayers::Run(absl::Span<const NativeRun> runs, ThreadPool& pool) {
  rows_ = runs.back().first_row + runs.back().rows;
  const int64_t most = attention_.run_rows();
  pieces_.clear();
  for (const NativeRun& run : runs) {
    for (int64_t row = 0; row < run.rows; row += most) {
      pieces_.push_back({run.slot, run.position + row, run.first_row + row,
                         std::min(most, run.rows - row)});
    }
  }
  for (int64_t layer = 0; layer < config_.n_layer; ++layer) {
    RunLayer(layer, pieces_, pool);
  }
}

void NativeLayers::RunLayer(int64_t index, absl::Span<const NativeRun> runs,
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
void NativeLayers::Attend(int64_t index, absl::Span<const NativeRun> runs,
                          const float* x, ThreadPool& pool) {
  const NativeLayer& layer = weights_.layers[index];
  StoreRows(index, runs, x, rows_, pool);
  ApplyLinear(
      {&layer.wq, DataOrNull(layer.bq)},
      {rows_, {x, stride_}, {}, queries_.data(), query_stride_, &integers_},
      pool);
  attention_.Run(
      layer, index, runs,
      {queries_.data(), query_stride_, attended_.data(), query_stride_}, pool);
  ApplyLinear({&layer.wo, DataOrNull(layer.bo)},
              {rows_,
               {attended_.data(), query_stride_},
               {hidden_.data(), stride_},
               sum_.data(),
               stride_,
               &integers_},
              pool);
}

void NativeLayers::FeedForward(const NativeLayer& layer, const float* x,
                               const float* residual, float* out,
                               ThreadPool& pool) {
  ApplyLinear(
      {&layer.ff_w1, DataOrNull(layer.ff_b1), ToRowActivation(config_.act)},
      {rows_, {x, stride_}, {}, inner_.data(), inner_stride_, &integers_},
      pool);
  ApplyLinear({&layer.ff_w2, DataOrNull(layer.ff_b2),
               ToRowActivation(config_.ff_out_act)},
              {rows_,
               {inner_.data(), inner_stride_},
               {residual, stride_},
               out,
               stride_,
               &integers_},
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

// What derives from a row, also of the newest token, derives from the row as it
// is stored: a state that is moved and derived again has the same bits.
void NativeLayers::StoreRows(int64_t index, absl::Span<const NativeRun> runs,
                             const float* x, int64_t rows, ThreadPool& pool) {
  const bool projected = arena_.shape().form == AttentionForm::kProjected;
  pool.Run(static_cast<int64_t>(runs.size()), [&](int64_t i, int) {
    const NativeRun& run = runs[i];
    for (int64_t r = 0; r < run.rows; ++r) {
      const int64_t row = run.first_row + r;
      const int64_t position = run.position + r;
      arena_.StoreRow(run.slot, index, position, x + row * stride_);
      if (!projected) continue;
      arena_.LoadRow(run.slot, index, position, stored_.data() + row * stride_);
    }
  });
  if (projected) DeriveRows(index, runs, rows, pool);
}

// Keys and values of stored_.
void NativeLayers::DeriveRows(int64_t index, absl::Span<const NativeRun> runs,
                              int64_t rows, ThreadPool& pool) {
  const NativeLayer& layer = weights_.layers[index];
  ApplyLinear({&layer.wkv, DataOrNull(layer.bkv)},
              {rows,
               {stored_.data(), stride_},
               {},
               key_values_.data(),
               key_value_stride_,
               &integers_},
              pool);
  pool.Run(static_cast<int64_t>(runs.size()), [&](int64_t i, int) {
    const NativeRun& run = runs[i];
    for (int64_t r = 0; r < run.rows; ++r) {
      const float* keys =
          key_values_.data() + (run.first_row + r) * key_value_stride_;
      arena_.WriteDerived(run.slot, index, run.position + r, keys,
                          keys + width_);
    }
  });
}

void NativeLayers::WidenStored(int32_t slot, int64_t layer, int64_t position,
                               int64_t count) {
  for (int64_t r = 0; r < count; ++r) {
    arena_.LoadRow(slot, layer, position + r, stored_.data() + r * stride_);
  }
}

void NativeLayers::DeriveStored(int32_t slot, int64_t position, int64_t count,
                                ThreadPool& pool) {
  if (arena_.shape().form != AttentionForm::kProjected) return;
  constexpr int64_t kRowsPerTile = 8;
  pieces_.clear();
  for (int64_t r = 0; r < count; r += kRowsPerTile) {
    pieces_.push_back(
        {slot, position + r, r, std::min(kRowsPerTile, count - r)});
  }
  for (int64_t layer = 0; layer < config_.n_layer; ++layer) {
    WidenStored(slot, layer, position, count);
    DeriveRows(layer, pieces_, count, pool);
  }
}

void NativeLayers::WriteStartRows(int32_t slot, ThreadPool& pool) {
  if (arena_.ring().mem_len == 0) return;
  std::vector<float> row(stride_);
  for (int64_t index = 0; index < config_.n_layer; ++index) {
    const NativeLayer& layer = weights_.layers[index];
    std::fill(row.begin(), row.end(), 0.0f);
    if (config_.norm == NormPlacement::kPre) {
      NormalizeRow(row.data(), config_.d_model, layer.ln1.g.data(),
                   layer.ln1.b.data(), static_cast<float>(config_.ln_eps),
                   row.data());
    }
    // All are equal: one is derived, a tile is written, the others are copies.
    for (int64_t t = 0; t < kPanel; ++t) {
      arena_.StoreRow(slot, index, t, row.data());
    }
    if (arena_.shape().form != AttentionForm::kProjected) continue;
    const NativeRun first = {slot, 0, 0, 1};
    WidenStored(slot, index, 0, 1);
    DeriveRows(index, {&first, 1}, 1, pool);
    for (int64_t t = 1; t < kPanel; ++t) {
      arena_.WriteDerived(slot, index, t, key_values_.data(),
                          key_values_.data() + width_);
    }
  }
  pool.Run(config_.n_layer,
           [&](int64_t index, int) { arena_.RepeatFirstTile(slot, index); });
}

}  // namespace txl
