#include "model/torch/row_tiles.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

namespace txl {
namespace {

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
