#include "model/torch/absorbed_attention.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "model/reference/attention.h"

namespace txl {
namespace {

constexpr int64_t kHeads = 2;
constexpr int64_t kHeadWidth = 3;
constexpr int64_t kWidth = 4;
constexpr int64_t kTile = 4;

at::Tensor Random(std::vector<int64_t> shape) {
  return at::randn(shape, at::kDouble);
}

ModelConfig SmallConfig(PositionKind pos) {
  ModelConfig config;
  config.vocab_size = 5;
  config.n_layer = 1;
  config.n_head = kHeads;
  config.d_head = kHeadWidth;
  config.d_model = config.d_embed = kWidth;
  config.d_inner = 4;
  config.mem_len = 5;
  config.window = 4;
  config.pos = pos;
  return config;
}

// Every bias there is.
Weights SmallWeights(PositionKind pos) {
  at::manual_seed(11);
  const int64_t all = kHeads * kHeadWidth;
  Weights weights;
  weights.embedding.push_back({Random({5, kWidth}), {}});
  LayerWeights layer;
  layer.wq = Random({all, kWidth});
  layer.wk = Random({all, kWidth});
  layer.wv = Random({all, kWidth});
  layer.wo = Random({kWidth, all});
  layer.bq = Random({all});
  layer.bk = Random({all});
  layer.bv = Random({all});
  layer.bo = Random({kWidth});
  layer.u = Random({kHeads, kHeadWidth});
  if (pos == PositionKind::kTable) {
    layer.rel_t = Random({6, kHeads, kHeadWidth});
    layer.rel_s = Random({6, kHeads});
  } else {
    layer.wr = Random({all, kWidth});
    layer.br = Random({all});
    layer.v = Random({kHeads, kHeadWidth});
  }
  weights.layers.push_back(layer);
  return weights;
}

// One head's score of key row c at a distance, in projected form.
double ProjectedScore(const ModelConfig& config, const Weights& weights,
                      const at::Tensor& q, const at::Tensor& c,
                      int64_t distance, int64_t head) {
  const LayerWeights& layer = weights.layers[0];
  const auto mine = [head](const at::Tensor& x) {
    return x.narrow(0, head * kHeadWidth, kHeadWidth);
  };
  const at::Tensor k = mine(layer.wk.mv(c) + layer.bk);
  const at::Tensor content = mine(q) + layer.u[head];
  at::Tensor score = content.dot(k);
  if (config.pos == PositionKind::kTable) {
    score = score + mine(q).dot(layer.rel_t[distance][head]) +
            layer.rel_s[distance][head];
  } else {
    const at::Tensor r =
        PositionEncoding(config, weights, distance + 1)[distance];
    score =
        score + (mine(q) + layer.v[head]).dot(mine(layer.wr.mv(r) + layer.br));
  }
  return score.item<double>() / std::sqrt(static_cast<double>(kHeadWidth));
}

// Keys and values formed, one query at a time; rows: position -> row.
at::Tensor ProjectedAttention(const ModelConfig& config, const Weights& weights,
                              const at::Tensor& rows, int64_t t) {
  const LayerWeights& layer = weights.layers[0];
  const at::Tensor q = layer.wq.mv(rows[t]) + layer.bq;
  std::vector<at::Tensor> heads;
  for (int64_t head = 0; head < kHeads; ++head) {
    at::Tensor sum = at::zeros({kHeadWidth}, at::kDouble);
    double total = 0;
    for (int64_t s = std::max<int64_t>(0, t - 3); s <= t; ++s) {
      const double weight =
          std::exp(ProjectedScore(config, weights, q, rows[s], t - s, head));
      const at::Tensor value = layer.wv.mv(rows[s]) + layer.bv;
      sum = sum + weight * value.narrow(0, head * kHeadWidth, kHeadWidth);
      total += weight;
    }
    heads.push_back(sum / total);
  }
  return layer.wo.mv(at::cat(heads)) + layer.bo;
}

class AbsorbedAttentionTest : public testing::TestWithParam<PositionKind> {};

TEST_P(AbsorbedAttentionTest, EqualsAttentionWithKeysAndValues) {
  const ModelConfig config = SmallConfig(GetParam());
  const Weights weights = SmallWeights(GetParam());
  RingGeometry ring;
  ring.mem_len = config.mem_len;
  ring.spare = 8;
  ring.window = 4;
  SlotArena arena(ring, 2, {at::zeros({kWidth}, at::kDouble)});
  const std::vector<PositionTable> tables = MakePositionTables(config, weights);
  const at::Tensor rows = Random({20, kWidth});  // of positions 0..19
  arena.Write(0, 0, 0, rows.narrow(0, 0, 2));
  arena.Write(0, 1, 7, rows.narrow(0, 7, 13));

  // Slot 0 feeds position 1 (of two rows), slot 1 positions 17..19.
  SegmentView first;
  first.position = 1;
  first.rows = 1;
  SegmentView second;
  second.slot = 1;
  second.position = 17;
  second.first_row = 1;
  second.rows = 3;
  const std::vector<SegmentView> views = {
      MakeSegmentView(ring, first, tables[0].keys.size(2), rows),
      MakeSegmentView(ring, second, tables[0].keys.size(2), rows)};
  const at::Tensor x = at::cat({rows.narrow(0, 1, 1), rows.narrow(0, 17, 3)});
  const at::Tensor out =
      AbsorbedAttention({kHeads, kHeadWidth, kTile}, weights.layers[0],
                        tables[0], x, views, {arena, 0});
  const std::vector<int64_t> positions = {1, 17, 18, 19};
  for (size_t i = 0; i < positions.size(); ++i) {
    EXPECT_TRUE(at::allclose(
        out[i], ProjectedAttention(config, weights, rows, positions[i]), 1e-10,
        1e-12))
        << "position " << positions[i];
  }
}

INSTANTIATE_TEST_SUITE_P(PositionKinds, AbsorbedAttentionTest,
                         testing::Values(PositionKind::kSinConcat,
                                         PositionKind::kSinInterleavedRaw,
                                         PositionKind::kTable));

TEST(PositionTableTest, HasNoColumnsBeyondTheClamp) {
  ModelConfig config = SmallConfig(PositionKind::kSinConcat);
  const Weights weights = SmallWeights(PositionKind::kSinConcat);
  EXPECT_EQ(MakePositionTables(config, weights)[0].keys.size(2), 4);
  config.clamp_len = 2;
  EXPECT_EQ(MakePositionTables(config, weights)[0].keys.size(2), 3);
  config.clamp_len = 50;
  EXPECT_EQ(MakePositionTables(config, weights)[0].keys.size(2), 4);
}

TEST(SegmentViewTest, MasksWhatAQueryDoesNotSee) {
  RingGeometry ring;
  ring.mem_len = 4;
  ring.spare = 8;
  ring.window = 3;
  SegmentView place;
  place.position = 2;
  place.rows = 2;
  const SegmentView view =
      MakeSegmentView(ring, place, 2, at::zeros({1}, at::kFloat));
  ASSERT_EQ(view.keys, 4);  // later indices hold nothing yet
  const float no = -std::numeric_limits<float>::infinity();
  EXPECT_TRUE(at::equal(
      view.mask.view({2, 4}),
      at::tensor({0.f, 0.f, 0.f, no, no, 0.f, 0.f, 0.f}).view({2, 4})));
  // Distance 2 has no column of its own.
  EXPECT_EQ(view.columns[0][0][0].item<int64_t>(), 1);
  EXPECT_EQ(view.columns[0][0][1].item<int64_t>(), 1);
  EXPECT_EQ(view.columns[0][0][2].item<int64_t>(), 0);
}

TEST(SegmentViewTest, AZeroStartSeesTheWholeRing) {
  RingGeometry ring;
  ring.mem_len = 4;
  ring.spare = 8;
  ring.window = 5;
  ring.zero_start = true;
  SegmentView place;
  place.rows = 1;
  const SegmentView view =
      MakeSegmentView(ring, place, 5, at::zeros({1}, at::kFloat));
  EXPECT_EQ(view.keys, 12);
  EXPECT_EQ(at::isfinite(view.mask).sum().item<int64_t>(), 5);
  EXPECT_EQ(view.columns[0][0][8].item<int64_t>(), 4);  // position -4
}

TEST(RowTilesTest, RowsAreRoundedUpToWholeTiles) {
  EXPECT_EQ(PaddedRows(0, 16), 0);
  EXPECT_EQ(PaddedRows(1, 16), 16);
  EXPECT_EQ(PaddedRows(16, 16), 16);
  EXPECT_EQ(PaddedRows(17, 16), 32);
}

TEST(RowTilesTest, PaddingAppendsZeroRows) {
  const at::Tensor x = at::ones({5, 3});
  const at::Tensor padded = PadRows(x, 4);
  ASSERT_EQ(padded.size(0), 8);
  EXPECT_TRUE(at::equal(padded.narrow(0, 0, 5), x));
  EXPECT_EQ(padded.narrow(0, 5, 3).abs().sum().item<float>(), 0);
  EXPECT_TRUE(PadRows(x, 5).is_same(x));
}

TEST(RowTilesTest, LinearIsTheProductPlusBias) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({8, 5}, at::kDouble);
  const at::Tensor w = at::randn({7, 5}, at::kDouble);
  const at::Tensor b = at::randn({7}, at::kDouble);
  // Sums written out, no matrix product.
  const at::Tensor product = (x.unsqueeze(1) * w.unsqueeze(0)).sum(2);
  EXPECT_TRUE(at::allclose(TiledLinear(x, w, {}, 4), product));
  EXPECT_TRUE(at::allclose(TiledLinear(x, w, b, 4), product + b));
}

TEST(RowTilesTest, EveryHeadHasItsOwnMatrix) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({6, 3, 4}, at::kDouble);  // rows, H, k
  const at::Tensor w = at::randn({3, 4, 5}, at::kDouble);
  const at::Tensor out = TiledHeads(x, w, 2);
  ASSERT_EQ(out.sizes(), at::IntArrayRef({6, 3, 5}));
  EXPECT_TRUE(out.is_contiguous());
  const at::Tensor expected = (x.unsqueeze(3) * w.unsqueeze(0)).sum(2);
  EXPECT_TRUE(at::allclose(out, expected));
}

TEST(RowTilesTest, ARowsBitsDoNotDependOnHowManyFollow) {
  at::manual_seed(3);
  const at::Tensor x = at::randn({48, 37});
  const at::Tensor w = at::randn({101, 37});
  const at::Tensor all = TiledLinear(x, w, {}, 16);
  const at::Tensor first =
      TiledLinear(PadRows(x.narrow(0, 0, 1), 16), w, {}, 16);
  EXPECT_TRUE(at::equal(first[0], all[0]));
}

TEST(RowTilesTest, RowsThatAreNoWholeTilesAreRefused) {
  const at::Tensor x = at::ones({5, 3});
  EXPECT_THROW(TiledLinear(x, at::ones({2, 3}), {}, 4), c10::Error);
  EXPECT_THROW(TiledHeads(at::ones({5, 1, 3}), at::ones({1, 3, 2}), 4),
               c10::Error);
}

}  // namespace

}  // namespace txl
