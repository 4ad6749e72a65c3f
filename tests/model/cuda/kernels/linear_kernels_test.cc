// Kernels that LaunchLinear takes for shapes that are too large to emulate.

#include "model/cuda/kernels/linear_kernels.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/model/cuda/kernels/linear_product.h"

namespace txl::cuda {
namespace {

template <typename T>
class LinearKernelsTest : public ::testing::Test {
 protected:
  Product<T> Whole(const ProductShape& shape) {
    std::uniform_int_distribution<int> small(-3, 3);
    return Product<T>(shape,
                      [&] { return static_cast<float>(small(random_)); });
  }

 private:
  std::mt19937 random_{21};
};
using NarrowFormats = ::testing::Types<Bf16, F16>;
TYPED_TEST_SUITE(LinearKernelsTest, NarrowFormats);

constexpr LinearPlan kLargeTiles = {LinearKernel::kTiles, 128, 128, 1};

TYPED_TEST(LinearKernelsTest, LargeTiles) {
  // Less than a tile, more than a tile both ways, and more inputs than stages.
  for (const ProductShape& shape :
       {ProductShape{20, 64, 64, 1}, ProductShape{130, 64, 192, 1},
        ProductShape{128, 320, 128, 2}}) {
    for (const int splits : {1, 5}) {
      if (splits > shape.inputs / kLinearUnit) continue;
      auto product = this->Whole(shape);
      product.to_narrow = false;
      product.splits = splits;
      const auto launch = [](Stream& stream,
                             const LinearArgs<TypeParam>& args) {
        LaunchTileLinear(stream, args, kLargeTiles);
      };
      product.Check(product.Run(launch), 0);
      product.has_range = true;
      product.first_row = 5;
      product.last_row = 19;
      product.Check(product.Run(launch), 0);
    }
  }
}

// However few of a block's warps share the inputs.
TYPED_TEST(LinearKernelsTest, WarpsThatShareInputs) {
  for (const int input_warps : {1, 2, 4}) {
    for (const int rows : {16, 32}) {
      const LinearPlan plan = {LinearKernel::kStream, rows, 128 / input_warps,
                               input_warps};
      for (const int outputs : {64, 192}) {
        auto product = this->Whole({rows - 3, 192, outputs, 1});
        product.to_narrow = false;
        const auto launch = [&](Stream& stream,
                                const LinearArgs<TypeParam>& args) {
          LaunchStreamLinear(stream, args, plan);
        };
        product.Check(product.Run(launch), 0);
      }
    }
  }
}

}  // namespace
}  // namespace txl::cuda
