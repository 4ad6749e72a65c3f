#include "model/cpu/native_attention.h"

#include <algorithm>
#include <cmath>

namespace txl {
namespace {

// Rows of one slot that read its keys and values together.
constexpr int64_t kRunRows = 6;
// Rows that read one head's position keys together.
constexpr int64_t kTaskRows = 24;
// Room beside the position scores: masked lanes are read, not used.
constexpr int64_t kMargin = 2 * kPanel;

int64_t FloorToPanel(int64_t position) {
  const int64_t lane = ((position % kPanel) + kPanel) % kPanel;
  return position - lane;
}

// The positional numbers of distances that share the farthest stored one.
void RepeatFarthest(float* row, int64_t end, int64_t count) {
  std::fill(row + end - count, row + end, row[end]);
}

}  // namespace

std::vector<NativeRun> CutRuns(const std::vector<NativeRun>& runs) {
  std::vector<NativeRun> pieces;
  for (const NativeRun& run : runs) {
    for (int64_t row = 0; row < run.rows; row += kRunRows) {
      pieces.push_back({run.slot, run.position + row, run.first_row + row,
                        std::min(kRunRows, run.rows - row)});
    }
  }
  return pieces;
}

NativeAttention::NativeAttention(NativeArena& arena, int64_t distances,
                                 int workers)
    : arena_(arena),
      distances_(distances),
      columns_(RoundUp(distances, kPanel)),
      position_offset_(std::max<int64_t>(0, arena.ring().window - columns_) +
                       kMargin),
      position_stride_(position_offset_ + columns_ + kMargin),
      score_stride_(RoundUp(arena.ring().window + kRunRows, kPanel) + kMargin) {
  const NativeShape& shape = arena.shape();
  for (int worker = 0; worker < workers; ++worker) {
    Scratch scratch;
    scratch.content = AlignedBuffer<float>(kRunRows * score_stride_);
    scratch.position = AlignedBuffer<float>(kTaskRows * position_stride_);
    scratch.queries = AlignedBuffer<float>(kTaskRows * shape.head_width);
    scratch.out = AlignedBuffer<float>(kRunRows * shape.value_stride());
    scratch_.push_back(std::move(scratch));
  }
}

void NativeAttention::Run(const NativeLayer& layer, int64_t layer_index,
                          const std::vector<NativeRun>& runs, const Rows& rows,
                          ThreadPool& pool) {
  // Groups of runs with at most kTaskRows rows: one group and head a task.
  std::vector<const NativeRun*> groups = {runs.data()};
  int64_t grouped = 0;
  for (const NativeRun& run : runs) {
    if (grouped + run.rows > kTaskRows) {
      groups.push_back(&run);
      grouped = 0;
    }
    grouped += run.rows;
  }
  const int64_t heads = arena_.shape().heads;
  const int64_t count = static_cast<int64_t>(groups.size());
  groups.push_back(runs.data() + runs.size());
  pool.Run(heads * count, [&](int64_t i, int worker) {
    Task task;
    task.layer = &layer;
    task.layer_index = layer_index;
    task.head = i / count;
    task.begin = groups[i % count];
    task.end = groups[i % count + 1];
    task.rows = rows;
    RunTask(task, scratch_[worker]);
  });
}

void NativeAttention::RunTask(const Task& task, Scratch& scratch) {
  PositionScores(task, scratch);
  const float* scores = scratch.position.data();
  for (const NativeRun* run = task.begin; run != task.end; ++run) {
    RunOne(task, *run, scores, scratch);
    scores += run->rows * position_stride_;
  }
}

void NativeAttention::PositionScores(const Task& task, Scratch& scratch) {
  const int64_t width = arena_.shape().head_width;
  const NativeLayer& layer = *task.layer;
  const float* v =
      layer.v.size() == 0 ? nullptr : layer.v.data() + task.head * width;
  int64_t rows = 0;
  for (const NativeRun* run = task.begin; run != task.end; ++run) {
    for (int64_t r = 0; r < run->rows; ++r, ++rows) {
      const float* q = task.rows.queries +
                       (run->first_row + r) * task.rows.stride +
                       task.head * width;
      float* query = scratch.queries.data() + rows * width;
      for (int64_t k = 0; k < width; ++k) {
        query[k] = v == nullptr ? q[k] : q[k] + v[k];
      }
    }
  }
  const PackedMatrix& keys = layer.position_keys[task.head];
  PanelProduct product;
  product.a = scratch.queries.data();
  product.a_stride = width;
  product.rows = rows;
  product.b_stride = kPanel;
  product.b_format = keys.format();
  product.k = width;
  product.columns = kPanel;
  product.out_stride = position_stride_;
  for (int64_t panel = 0; panel < keys.panels(); ++panel) {
    product.b = keys.panel(panel);
    product.out = scratch.position.data() + position_offset_ + panel * kPanel;
    MultiplyPanel(product);
  }
  const int64_t farthest = position_offset_ + columns_ - distances_;
  for (int64_t r = 0; r < rows; ++r) {
    float* row = scratch.position.data() + r * position_stride_;
    if (layer.position_bias.size() != 0) {
      AddRows(row + position_offset_,
              layer.position_bias.data() + task.head * columns_, columns_,
              row + position_offset_);
    }
    RepeatFarthest(row, farthest, arena_.ring().window - distances_);
  }
}

void NativeAttention::RunOne(const Task& task, const NativeRun& run,
                             const float* position_scores, Scratch& scratch) {
  const RingGeometry& ring = arena_.ring();
  const int64_t width = arena_.shape().head_width;
  const float* u = task.layer->u.data() + task.head * width;
  for (int64_t r = 0; r < run.rows; ++r) {
    const float* q = task.rows.queries +
                     (run.first_row + r) * task.rows.stride + task.head * width;
    float* query = scratch.queries.data() + r * width;
    for (int64_t k = 0; k < width; ++k) query[k] = q[k] + u[k];
  }
  const int64_t tile_begin = FloorToPanel(ring.OldestVisible(run.position));
  const int64_t tile_end = FloorToPanel(run.position + run.rows - 1) + kPanel;
  PanelProduct product;
  product.a = scratch.queries.data();
  product.a_stride = width;
  product.rows = run.rows;
  product.b_stride = kPanel;
  product.b_format = arena_.shape().derived;
  product.k = width;
  product.columns = kPanel;
  product.out_stride = score_stride_;
  for (int64_t tile = tile_begin; tile < tile_end; tile += kPanel) {
    product.b = arena_.KeyTile(run.slot, task.layer_index, task.head, tile);
    product.out = scratch.content.data() + (tile - tile_begin);
    MultiplyPanel(product);
  }
  const float scale = 1 / std::sqrt(static_cast<float>(width));
  float sums[kRunRows];
  for (int64_t r = 0; r < run.rows; ++r) {
    const int64_t t = run.position + r;
    // Column of position tile_begin in this query's position scores.
    const float* position = position_scores + r * position_stride_ +
                            position_offset_ + columns_ - 1 - t + tile_begin;
    sums[r] =
        SoftmaxWeights(scratch.content.data() + r * score_stride_, position,
                       scale, ring.OldestVisible(t) - tile_begin,
                       t - tile_begin + 1, tile_end - tile_begin);
  }
  SumValues(task, run, tile_begin, scratch);
  for (int64_t r = 0; r < run.rows; ++r) {
    const float* sum = scratch.out.data() + r * arena_.shape().value_stride();
    float* out = task.rows.out + (run.first_row + r) * task.rows.out_stride +
                 task.head * width;
    const float inverse = 1 / sums[r];
    for (int64_t k = 0; k < width; ++k) out[k] = sum[k] * inverse;
  }
}

// Positions that all rows see are read once for all; the rows' own ends, before
// and after, row by row. For each row the order of positions is the same.
void NativeAttention::SumValues(const Task& task, const NativeRun& run,
                                int64_t tile_begin, Scratch& scratch) {
  const RingGeometry& ring = arena_.ring();
  std::fill_n(scratch.out.data(), scratch.out.size(), 0.0f);
  const int64_t common_begin = ring.OldestVisible(run.position + run.rows - 1);
  const int64_t common_end = run.position;  // inclusive
  for (int64_t r = 0; r < run.rows; ++r) {
    const int64_t t = run.position + r;
    AddValues(task, run, r, 1, ring.OldestVisible(t),
              std::min(common_begin - 1, t), tile_begin, scratch);
  }
  AddValues(task, run, 0, run.rows, common_begin, common_end, tile_begin,
            scratch);
  for (int64_t r = 0; r < run.rows; ++r) {
    AddValues(task, run, r, 1, std::max(common_begin, common_end + 1),
              run.position + r, tile_begin, scratch);
  }
}

void NativeAttention::AddValues(const Task& task, const NativeRun& run,
                                int64_t row, int64_t rows, int64_t first,
                                int64_t last, int64_t tile_begin,
                                Scratch& scratch) {
  const RingGeometry& ring = arena_.ring();
  const int64_t stride = arena_.shape().value_stride();
  PanelProduct product;
  product.a_stride = score_stride_;
  product.rows = rows;
  product.b_stride = stride;
  product.b_format = arena_.shape().derived;
  product.columns = stride;
  product.out = scratch.out.data() + row * stride;
  product.out_stride = stride;
  product.accumulate = true;
  while (first <= last) {
    // Up to the end of the ring's memory.
    product.k =
        std::min(last - first + 1, ring.capacity() - ring.IndexOf(first));
    product.a =
        scratch.content.data() + row * score_stride_ + (first - tile_begin);
    product.b = arena_.Value(run.slot, task.layer_index, task.head, first);
    MultiplyPanel(product);
    first += product.k;
  }
}

}  // namespace txl
