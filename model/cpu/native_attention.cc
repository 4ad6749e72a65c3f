#include "model/cpu/native_attention.h"

#include <algorithm>

namespace txl {
namespace {

// Rows that read one head's positional keys together.
constexpr int64_t kGroupRows = 24;
// Rows whose positional scores are kept at a time.
constexpr int64_t kBatchRows = 2 * kGroupRows;
// With fewer units of work a thread would often wait for the last one.
constexpr int64_t kUnitsPerThread = 2;

}  // namespace

NativeAttention::NativeAttention(NativeArena& arena, int64_t distances,
                                 int workers)
    : shape_(arena.shape()),
      absorbed_(shape_.form == AttentionForm::kAbsorbed),
      positions_(arena.ring().window, distances),
      chunks_(arena, positions_),
      width_(shape_.heads * shape_.head_width),
      model_stride_(RoundUp(shape_.model_width, kPanel)),
      value_stride_(RoundUp(shape_.head_width, kPanel)),
      panel_queries_(RoundUp(shape_.heads, kColumnGroup)),
      panel_depth_(RoundUp(shape_.model_width, kQuad)),
      split_units_(workers == 1 ? 0 : kUnitsPerThread * workers),
      content_queries_(kBatchRows * width_),
      position_queries_(kBatchRows * width_),
      position_scores_(kBatchRows * shape_.heads * positions_.stride()),
      chunk_out_(split_units_ * chunks_.max_chunks() * chunks_.max_queries() *
                 chunks_.width()),
      chunk_parts_(split_units_ * chunks_.max_chunks() *
                   chunks_.max_queries()) {
  if (shape_.derived == NumberFormat::kInt8) {
    const int64_t queries = kBatchRows * shape_.heads;
    position_integers_.Reserve(queries, shape_.head_width);
    if (!absorbed_) content_integers_.Reserve(queries, shape_.head_width);
  }
  if (absorbed_) {
    const int64_t queries = kBatchRows * shape_.heads;
    absorbed_queries_ = AlignedBuffer<float>(queries * model_stride_);
    contexts_ = AlignedBuffer<float>(queries * model_stride_);
    values_ = AlignedBuffer<float>(queries * value_stride_);
    if (shape_.integer_attention()) {
      absorbed_integers_.Reserve(queries, shape_.model_width);
      panel_scales_ = AlignedBuffer<float>(kBatchRows * panel_queries_);
      panels_ = AlignedBuffer<int8_t>(panel_scales_.size() * panel_depth_);
    }
  }
  groups_.reserve(kBatchRows);
  const int64_t queries = chunks_.max_queries();
  for (int worker = 0; worker < workers; ++worker) {
    Scratch scratch;
    scratch.scores = chunks_.MakeScratch();
    scratch.out = AlignedBuffer<float>(queries * chunks_.width());
    scratch.parts = AlignedBuffer<SoftmaxPart>(queries);
    const int64_t grouped = absorbed_ ? queries : kBatchRows;
    scratch.total = AlignedBuffer<float>(grouped * chunks_.width());
    scratch.totals = AlignedBuffer<SoftmaxPart>(grouped);
    scratch_.push_back(std::move(scratch));
  }
}

void NativeAttention::Run(const NativeLayer& layer, int64_t layer_index,
                          absl::Span<const NativeRun> runs, const Rows& rows,
                          ThreadPool& pool) {
  size_t begin = 0;
  while (begin < runs.size()) {
    size_t end = begin;
    int64_t count = 0;
    while (end < runs.size() && count + runs[end].rows <= kBatchRows) {
      count += runs[end++].rows;
    }
    RunBatch({&layer, layer_index, runs.subspan(begin, end - begin),
              runs[begin].first_row, count, rows},
             pool);
    begin = end;
  }
}

void NativeAttention::RunBatch(const Batch& batch, ThreadPool& pool) {
  AddBiases(batch);
  if (shape_.derived == NumberFormat::kInt8) QuantiseQueries(batch, pool);
  if (absorbed_) AbsorbKeys(batch, pool);
  if (absorbed_ && shape_.integer_attention()) PackAbsorbed(batch, pool);
  ScorePositions(batch, pool);
  if (Units(batch) < split_units_) {
    RunUnitsInChunks(batch, pool);
  } else {
    RunUnits(batch, pool);
  }
  if (absorbed_) ProjectValues(batch, pool);
}

// q + u and q + v.
void NativeAttention::AddBiases(const Batch& batch) {
  const float* u = batch.layer->u.data();
  const float* v = batch.layer->v.size() == 0 ? nullptr : batch.layer->v.data();
  for (int64_t r = 0; r < batch.rows; ++r) {
    const float* q =
        batch.places.queries + (batch.first_row + r) * batch.places.stride;
    float* content = content_queries_.data() + r * width_;
    float* position = position_queries_.data() + r * width_;
    for (int64_t k = 0; k < width_; ++k) content[k] = q[k] + u[k];
    if (v == nullptr) {
      std::copy_n(q, width_, position);
    } else {
      for (int64_t k = 0; k < width_; ++k) position[k] = q[k] + v[k];
    }
  }
}

// Heads lie side by side, so that they are rows of their own.
void NativeAttention::QuantiseQueries(const Batch& batch, ThreadPool& pool) {
  const int64_t rows = batch.rows * shape_.heads;
  const int64_t width = shape_.head_width;
  position_integers_.Quantise({position_queries_.data(), width}, rows, width,
                              pool);
  if (absorbed_) return;
  content_integers_.Quantise({content_queries_.data(), width}, rows, width,
                             pool);
}

// (q_n + u_n) Wk_n, for every head n.
void NativeAttention::AbsorbKeys(const Batch& batch, ThreadPool& pool) {
  const int64_t panels = batch.layer->absorbed_keys[0].panels();
  pool.Run(shape_.heads * panels, [&](int64_t i, int) {
    const int64_t head = i / panels;
    LinearRows rows;
    rows.rows = batch.rows;
    rows.x = {content_queries_.data() + head * shape_.head_width, width_};
    rows.out = absorbed_queries_.data() + head * model_stride_;
    rows.out_stride = shape_.heads * model_stride_;
    ApplyPanel({&batch.layer->absorbed_keys[head]}, rows, i % panels);
  });
}

void NativeAttention::PackAbsorbed(const Batch& batch, ThreadPool& pool) {
  absorbed_integers_.Quantise({absorbed_queries_.data(), model_stride_},
                              batch.rows * shape_.heads, shape_.model_width,
                              pool);
  pool.Run(static_cast<int64_t>(batch.runs.size()), [&](int64_t i, int) {
    const NativeRun& run = batch.runs[i];
    const int64_t row = run.first_row - batch.first_row;
    const int64_t count = run.rows * shape_.heads;
    const IntegerFactor queries =
        absorbed_integers_.Every(1, row * shape_.heads);
    float* scales = panel_scales_.data() + row * panel_queries_;
    int8_t* panels = panels_.data() + row * panel_queries_ * panel_depth_;
    for (int64_t q = 0; q < count; ++q) {
      const int64_t first = q / kPanel * kPanel;  // of the panel
      const int64_t columns =
          std::min(kPanel, RoundUp(count - first, kColumnGroup));
      SpreadNumbers(queries.data + q * queries.stride, NumberFormat::kF32,
                    panel_depth_ / kQuad, columns,
                    panels + first * panel_depth_ + (q - first) * kQuad);
      scales[q] = queries.rows[q].scale;
    }
  });
}

IntegerFactor NativeAttention::RowsOfHead(const IntegerRows& integers,
                                          int64_t first, int64_t head) const {
  return integers.Every(shape_.heads, first * shape_.heads + head);
}

void NativeAttention::ScorePositions(const Batch& batch, ThreadPool& pool) {
  const int64_t groups = (batch.rows + kGroupRows - 1) / kGroupRows;
  const int64_t row_stride = shape_.heads * positions_.stride();
  pool.Run(shape_.heads * groups, [&](int64_t i, int) {
    const int64_t head = i / groups;
    const int64_t first = i % groups * kGroupRows;
    positions_.Compute(
        *batch.layer, head,
        {position_queries_.data() + first * width_ + head * shape_.head_width,
         width_, std::min(kGroupRows, batch.rows - first),
         position_scores_.data() + first * row_stride +
             head * positions_.stride(),
         row_stride, RowsOfHead(position_integers_, first, head)});
  });
}

AttentionQueries NativeAttention::Queries(const Batch& batch,
                                          int64_t unit) const {
  const int64_t runs = static_cast<int64_t>(batch.runs.size());
  AttentionQueries queries;
  // Units of one head follow each other: a prompt's runs read the same keys.
  queries.run = batch.runs[unit % runs];
  queries.layer = batch.layer_index;
  queries.head = absorbed_ ? 0 : unit / runs;
  queries.heads = absorbed_ ? shape_.heads : 1;
  const int64_t row = queries.run.first_row - batch.first_row;
  if (absorbed_) {
    queries.content =
        absorbed_queries_.data() + row * shape_.heads * model_stride_;
    queries.content_stride = model_stride_;
    queries.position_stride = positions_.stride();
    if (shape_.integer_attention()) {
      queries.panels = panels_.data() + row * panel_queries_ * panel_depth_;
      queries.panel_scales = panel_scales_.data() + row * panel_queries_;
    }
  } else {
    queries.content = content_queries_.data() + row * width_ +
                      queries.head * shape_.head_width;
    queries.content_stride = width_;
    queries.integers = RowsOfHead(content_integers_, row, queries.head);
    queries.position_stride = shape_.heads * positions_.stride();
  }
  queries.position = position_scores_.data() +
                     (row * shape_.heads + queries.head) * positions_.stride();
  return queries;
}

AttentionParts NativeAttention::Totals(Scratch& scratch, int64_t first) const {
  return {scratch.totals.data() + first,
          scratch.total.data() + first * chunks_.width()};
}

// Runs that read the same keys and values: of one slot. In absorbed form a
// run's queries are many enough as they are.
void NativeAttention::FormGroups(const Batch& batch) {
  groups_.clear();
  for (size_t i = 0; i < batch.runs.size(); ++i) {
    if (i == 0 || absorbed_ || batch.runs[i].slot != batch.runs[i - 1].slot) {
      groups_.push_back(static_cast<int64_t>(i));
    }
  }
}

// A chunk's keys and values are read once, by all runs of a group, while the
// caches have them.
void NativeAttention::RunUnits(const Batch& batch, ThreadPool& pool) {
  FormGroups(batch);
  const int64_t groups = static_cast<int64_t>(groups_.size());
  const int64_t runs = static_cast<int64_t>(batch.runs.size());
  pool.Run(groups * UnitsPerRun(), [&](int64_t i, int worker) {
    const int64_t group = i % groups;
    const int64_t begin = groups_[group];
    const int64_t end = group + 1 == groups ? runs : groups_[group + 1];
    RunGroup(batch, {i / groups, begin, end}, scratch_[worker]);
  });
}

void NativeAttention::RunGroup(const Batch& batch, const Group& group,
                               Scratch& scratch) {
  const int64_t runs = static_cast<int64_t>(batch.runs.size());
  const AttentionParts part = {scratch.parts.data(), scratch.out.data()};
  const int64_t heads = absorbed_ ? shape_.heads : 1;
  const int64_t first_row = batch.runs[group.begin].first_row;
  const auto total = [&](int64_t run) {
    return Totals(scratch, (batch.runs[run].first_row - first_row) * heads);
  };
  std::fill_n(scratch.totals.data(), scratch.totals.size(), SoftmaxPart());
  const int64_t last = chunks_.LastChunk(batch.runs[group.end - 1]);
  for (int64_t chunk = chunks_.FirstChunk(batch.runs[group.begin]);
       chunk <= last; chunk += chunks_.length()) {
    for (int64_t run = group.begin; run < group.end; ++run) {
      if (chunk < chunks_.FirstChunk(batch.runs[run])) continue;
      if (chunk > chunks_.LastChunk(batch.runs[run])) continue;
      const AttentionQueries queries = Queries(batch, group.head * runs + run);
      chunks_.RunChunk(queries, chunk, part, scratch.scores.data());
      chunks_.Merge(part, queries.count(), total(run));
    }
  }
  for (int64_t run = group.begin; run < group.end; ++run) {
    WriteUnit(batch, group.head * runs + run, total(run));
  }
}

AttentionParts NativeAttention::Part(int64_t unit, int64_t chunk) {
  const int64_t first =
      (unit * chunks_.max_chunks() + chunk) * chunks_.max_queries();
  return {chunk_parts_.data() + first,
          chunk_out_.data() + first * chunks_.width()};
}

// Few units: every chunk is a tile of its own, so that a long memory keeps all
// threads busy.
void NativeAttention::RunUnitsInChunks(const Batch& batch, ThreadPool& pool) {
  const int64_t units = Units(batch);
  const int64_t most = chunks_.max_chunks();
  pool.Run(units * most, [&](int64_t i, int worker) {
    const int64_t unit = i / most;
    const AttentionQueries queries = Queries(batch, unit);
    const int64_t chunk =
        chunks_.FirstChunk(queries.run) + i % most * chunks_.length();
    if (chunk > chunks_.LastChunk(queries.run)) return;
    chunks_.RunChunk(queries, chunk, Part(unit, i % most),
                     scratch_[worker].scores.data());
  });
  pool.Run(units, [&](int64_t unit, int worker) {
    const AttentionQueries queries = Queries(batch, unit);
    Scratch& scratch = scratch_[worker];
    std::fill_n(scratch.totals.data(), queries.count(), SoftmaxPart());
    const AttentionParts total = Totals(scratch, 0);
    const int64_t count =
        (chunks_.LastChunk(queries.run) - chunks_.FirstChunk(queries.run)) /
            chunks_.length() +
        1;
    for (int64_t chunk = 0; chunk < count; ++chunk) {
      chunks_.Merge(Part(unit, chunk), queries.count(), total);
    }
    WriteUnit(batch, unit, total);
  });
}

void NativeAttention::WriteUnit(const Batch& batch, int64_t unit,
                                const AttentionParts& total) {
  const AttentionQueries queries = Queries(batch, unit);
  chunks_.Finish(total, queries.count());
  for (int64_t i = 0; i < queries.count(); ++i) {
    const float* from = total.out + i * chunks_.width();
    const int64_t row = queries.run.first_row + i / queries.heads;
    if (absorbed_) {
      const int64_t place =
          (row - batch.first_row) * shape_.heads + i % queries.heads;
      std::copy_n(from, chunks_.width(),
                  contexts_.data() + place * model_stride_);
    } else {
      std::copy_n(from, shape_.head_width,
                  batch.places.out + row * batch.places.out_stride +
                      queries.head * shape_.head_width);
    }
  }
}

// Wv_n of the contexts, and the bias on values: the softmax sums to 1.
void NativeAttention::ProjectValues(const Batch& batch, ThreadPool& pool) {
  const NativeLayer& layer = *batch.layer;
  const int64_t panels = layer.absorbed_values[0].panels();
  pool.Run(shape_.heads * panels, [&](int64_t i, int) {
    const int64_t head = i / panels;
    LinearRows rows;
    rows.rows = batch.rows;
    rows.x = {contexts_.data() + head * model_stride_,
              shape_.heads * model_stride_};
    rows.out = values_.data() + head * value_stride_;
    rows.out_stride = shape_.heads * value_stride_;
    const int64_t panel = i % panels;
    ApplyPanel({&layer.absorbed_values[head]}, rows, panel);
    const int64_t begin = panel * kPanel;
    const int64_t end = std::min(begin + kPanel, shape_.head_width);
    for (int64_t r = 0; r < batch.rows; ++r) {
      const float* from = rows.out + r * rows.out_stride;
      float* to = batch.places.out +
                  (batch.first_row + r) * batch.places.out_stride +
                  head * shape_.head_width;
      const float* bias =
          layer.value_bias.size() == 0
              ? nullptr
              : layer.value_bias.data() + head * shape_.head_width;
      for (int64_t k = begin; k < end; ++k) {
        to[k] = bias == nullptr ? from[k] : from[k] + bias[k];
      }
    }
  });
}

}  // namespace txl
