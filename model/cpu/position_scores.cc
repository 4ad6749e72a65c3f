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
  PanelProduct product;
  product.a = queries.data;
  product.a_stride = queries.stride;
  product.rows = queries.rows;
  product.b_stride = kPanel;
  product.b_format = keys.format();
  product.k = keys.inputs();
  product.columns = kPanel;
  product.out_stride = queries.out_stride;
  for (int64_t panel = 0; panel < keys.panels(); ++panel) {
    product.b = keys.panel(panel);
    product.out = queries.out + offset_ + panel * kPanel;
    MultiplyPanel(product);
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
