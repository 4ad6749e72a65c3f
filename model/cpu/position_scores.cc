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

void PositionScores::Compute(const NativeLayer& layer, int64_t head,
                             const Queries& queries) const {
  const PackedMatrix& keys = layer.position_keys[head];
  for (int64_t panel = 0; panel < keys.panels(); ++panel) {
    ProductRows rows;
    rows.rows = queries.rows;
    rows.x = {queries.data, queries.stride};
    rows.integers = queries.integers;
    rows.out = queries.out + offset_ + panel * kPanel;
    rows.out_stride = queries.out_stride;
    MultiplyByPanel(keys, panel, rows);
  }
  for (int64_t r = 0; r < queries.rows; ++r) {
    float* row = queries.out + r * queries.out_stride;
    if (layer.position_bias.size() != 0) {
      AddRows(row + offset_, layer.position_bias.data() + head * columns_,
              columns_, row + offset_);
    }
    // Distances beyond the stored ones share the farthest.
    const int64_t farthest = offset_ + columns_ - distances_;
    std::fill(row + farthest - (window_ - distances_), row + farthest,
              row[farthest]);
  }
}

}  // namespace txl
