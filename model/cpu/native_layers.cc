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
      key_values_(max_rows * key_value_stride_),
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
  StoreRows(index, runs, x, rows_, pool);
  ApplyLinear({&layer.wq, DataOrNull(layer.bq)},
              {rows_, {x, stride_}, {}, queries_.data(), query_stride_}, pool);
  attention_.Run(
      layer, index, runs,
      {queries_.data(), query_stride_, attended_.data(), query_stride_}, pool);
  ApplyLinear({&layer.wo, DataOrNull(layer.bo)},
              {rows_,
               {attended_.data(), query_stride_},
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

// Keys and values come from the rows as they are stored, also for the newest
// token: a state that is moved and derived again has the same bits.
void NativeLayers::StoreRows(int64_t index, const std::vector<NativeRun>& runs,
                             const float* x, int64_t rows, ThreadPool& pool) {
  const NativeLayer& layer = weights_.layers[index];
  const NumberFormat format = arena_.shape().memory;
  const auto for_each_row = [&](auto&& visit) {
    pool.Run(static_cast<int64_t>(runs.size()), [&](int64_t i, int) {
      for (int64_t r = 0; r < runs[i].rows; ++r) {
        visit(runs[i].slot, runs[i].position + r, runs[i].first_row + r);
      }
    });
  };
  for_each_row([&](int32_t slot, int64_t t, int64_t row) {
    uint8_t* to = arena_.Row(slot, index, t);
    NarrowRow(x + row * stride_, config_.d_model, format, to);
    WidenRow(to, format, config_.d_model, stored_.data() + row * stride_);
  });
  ApplyLinear({&layer.wkv, DataOrNull(layer.bkv)},
              {rows,
               {stored_.data(), stride_},
               {},
               key_values_.data(),
               key_value_stride_},
              pool);
  for_each_row([&](int32_t slot, int64_t t, int64_t row) {
    const float* keys = key_values_.data() + row * key_value_stride_;
    arena_.WriteDerived(slot, index, t, keys, keys + width_);
  });
}

void NativeLayers::WriteRows(int32_t slot, int64_t layer, int64_t position,
                             const uint8_t* rows, int64_t count,
                             ThreadPool& pool) {
  for (int64_t done = 0; done < count; done += max_rows_) {
    const int64_t now = std::min(max_rows_, count - done);
    std::vector<NativeRun> runs;
    for (int64_t r = 0; r < now; ++r) {
      WidenRow(rows + (done + r) * arena_.row_bytes(), arena_.shape().memory,
               config_.d_model, sum_.data() + r * stride_);
      runs.push_back({slot, position + done + r, r, 1});
    }
    StoreRows(layer, runs, sum_.data(), now, pool);
  }
}

void NativeLayers::WriteStartRows(int32_t slot, ThreadPool& pool) {
  const RingGeometry& ring = arena_.ring();
  if (ring.mem_len == 0) return;
  std::vector<float> row(stride_);
  std::vector<uint8_t> stored(arena_.row_bytes());
  const int64_t first = ring.first_position();
  for (int64_t index = 0; index < config_.n_layer; ++index) {
    const NativeLayer& layer = weights_.layers[index];
    std::fill(row.begin(), row.end(), 0.0f);
    if (config_.norm == NormPlacement::kPre) {
      NormalizeRow(row.data(), config_.d_model, layer.ln1.g.data(),
                   layer.ln1.b.data(), static_cast<float>(config_.ln_eps),
                   row.data());
    }
    NarrowRow(row.data(), config_.d_model, arena_.shape().memory,
              stored.data());
    WriteRows(slot, index, first, stored.data(), 1, pool);
    // The others are equal: derived once, written often.
    pool.Run(ring.mem_len - 1, [&](int64_t i, int) {
      const int64_t t = first + 1 + i;
      std::copy(stored.begin(), stored.end(), arena_.Row(slot, index, t));
      arena_.WriteDerived(slot, index, t, key_values_.data(),
                          key_values_.data() + width_);
    });
  }
}

}  // namespace txl
