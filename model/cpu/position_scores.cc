#include "model/cpu/position_scores.h"

#include <algorithm>

namespace txl {
namespace {

// Room beside the scores: masked lanes are read, not used.
constexpr int64_t kMargin = 2 * kPanel;

}  // namespace

PositionScores::PositionScores(int64_t window, int64_t distances)
    : window_(window),
      distances_(distances),
      columns_(RoundUp(distances, kPanel)),
      offset_(std::max<int64_t>(0, window - columns_) + kMargin),
      stride_(offset_ + columns_ + kMargin) {}

void PositionScores::ComputePanel(const NativeLayer& layer, int64_t head,
                                  const Queries& queries, int64_t panel,
                                  float* out) const {
  ProductRows rows;
  rows.rows = queries.rows;
  rows.x = {queries.data, queries.stride};
  rows.integers = queries.integers;
  rows.out = out;
  rows.out_stride = queries.out_stride;
  MultiplyByPanel(layer.position_keys[head], panel, rows);
  if (layer.position_bias.size() == 0) return;
  const float* bias =
      layer.position_bias.data() + head * columns_ + panel * kPanel;
  for (int64_t r = 0; r < queries.rows; ++r) {
    float* row = out + r * queries.out_stride;
    AddRows(row, bias, kPanel, row);
  }
}

void PositionScores::ComputePanels(const NativeLayer& layer, int64_t head,
                                   const Queries& queries,
                                   const Panels& panels) const {
  const int64_t end = std::min(panels.end, columns_ / kPanel);
  for (int64_t p = std::max<int64_t>(panels.begin, 0); p < end; ++p) {
    ComputePanel(layer, head, queries, p,
                 queries.out + (p - panels.begin) * kPanel);
  }
}

void PositionScores::Compute(const NativeLayer& layer, int64_t head,
                             const Queries& queries) const {
  for (int64_t panel = 0; panel < columns_ / kPanel; ++panel) {
    ComputePanel(layer, head, queries, panel,
                 queries.out + offset_ + panel * kPanel);
  }
  for (int64_t r = 0; r < queries.rows; ++r) {
    float* row = queries.out + r * queries.out_stride;
    // Distances beyond the stored ones share the farthest.
    const int64_t farthest = offset_ + columns_ - distances_;
    std::fill(row + farthest - (window_ - distances_), row + farthest,
              row[farthest]);
  }
}

}  // namespace txl
