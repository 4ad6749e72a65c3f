#include "model/cuda/kernels/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "tests/model/cuda/kernels/linear_product.h"

namespace txl::cuda {
namespace {

// Bit by bit: NaN stands where nothing was written.
template <typename Result>
bool SameBits(const Result& a, const Result& b) {
  const auto same = [](const auto& x, const auto& y) {
    if (x.size() != y.size()) return false;
    return x.empty() ||
           std::memcmp(x.data(), y.data(), x.size() * sizeof(x[0])) == 0;
  };
  return same(a.wide, b.wide) && same(a.narrow, b.narrow) &&
         same(a.rest, b.rest);
}

template <typename T>
class LinearTest : public ::testing::Test {
 protected:
  // Real numbers around 0, of which the sums stay around 1.
  Product<T> Real(const ProductShape& shape) {
    std::normal_distribution<float> normal(0, 0.3f);
    return Product<T>(shape, [&] { return normal(random_); });
  }
  // Small integers: every sum is exact, whatever its order.
  Product<T> Whole(const ProductShape& shape) {
    std::uniform_int_distribution<int> small(-3, 3);
    return Product<T>(shape,
                      [&] { return static_cast<float>(small(random_)); });
  }

 private:
  std::mt19937 random_{20};
};
using Formats = ::testing::Types<float, Bf16, F16>;
TYPED_TEST_SUITE(LinearTest, Formats);

// Few rows and many, tiles that they do not fill, inputs for one warp of a
// block and for several rounds of all, heads.
const ProductShape kShapes[] = {
    {1, 64, 64, 1},    {3, 128, 192, 3},  {5, 448, 128, 1}, {16, 640, 64, 2},
    {17, 192, 192, 1}, {32, 320, 64, 2},  {33, 64, 64, 1},  {64, 320, 64, 1},
    {70, 192, 192, 2}, {129, 128, 64, 1},
};

TYPED_TEST(LinearTest, SumsOfIntegersAreExact) {
  for (const ProductShape& shape : kShapes) {
    auto product = this->Whole(shape);
    product.to_narrow = false;
    product.Check(product.Run(), 0);
  }
}

TYPED_TEST(LinearTest, RoundsOnceMoreForNarrowRows) {
  for (const ProductShape& shape : kShapes) {
    auto product = this->Real(shape);
    product.Check(product.Run(), 1);
  }
}

TYPED_TEST(LinearTest, SplitSumsComeTogether) {
  for (const ProductShape& shape : kShapes) {
    const int units = shape.inputs / kLinearUnit;
    for (const int splits : {2, units}) {
      if (splits > units || splits == 1) continue;
      auto product = this->Whole(shape);
      product.to_narrow = false;
      product.splits = splits;
      product.Check(product.Run(), 0);
    }
  }
}

TYPED_TEST(LinearTest, AppliesActivationsBeforeTheResidual) {
  for (const int splits : {1, 2}) {
    for (const auto activation :
         {LinearActivation::kRelu, LinearActivation::kGeluTanh}) {
      for (const int rows : {2, 40}) {
        auto product = this->Real({rows, 128, 64, 2});
        product.activation = activation;
        product.splits = splits;
        product.Check(product.Run(), 1);
      }
    }
  }
}

TYPED_TEST(LinearTest, GeluOfLargeNumbersIsTheNumberOrZero) {
  auto product = this->Whole({4, 1024, 64, 1});
  product.activation = LinearActivation::kGeluTanh;
  product.Check(product.Run(), 1);
}

TYPED_TEST(LinearTest, LeavesOutWhatIsNotThere) {
  for (int missing = 0; missing < 4; ++missing) {
    for (const int rows : {3, 35}) {
      for (const int splits : {1, 2}) {
        auto product = this->Real({rows, 128, 64, 1});
        product.has_bias = missing != 0;
        product.has_residual = missing != 1;
        product.to_wide = missing != 2;
        product.to_narrow = missing != 3;
        product.splits = splits;
        product.Check(product.Run(), 1);
      }
    }
  }
}

// Two matrices in one: the second one's outputs go to an array of their own,
// from a border on that no tile needs to begin at.
TYPED_TEST(LinearTest, TheRestOfTheOutputsHasAPlaceOfItsOwn) {
  for (const ProductShape& shape : kShapes) {
    for (int from = kLinearUnit; from < shape.outputs; from += kLinearUnit) {
      for (const int splits : {1, 2}) {
        if (splits > shape.inputs / kLinearUnit) continue;
        auto product = this->Real(shape);
        product.rest_from = from;
        product.splits = splits;
        product.activation = LinearActivation::kRelu;
        product.Check(product.Run(), 1);
        product.has_range = true;
        product.first_row = 1;
        product.last_row = 40;
        product.Check(product.Run(), 1);
      }
    }
  }
}

TYPED_TEST(LinearTest, GivesTheSameBitsInWhateverOrderThreadsRun) {
  for (const ProductShape& shape : kShapes) {
    auto product = this->Real(shape);
    product.splits = std::min(2, shape.inputs / kLinearUnit);
    ShuffleThreads(1);
    const auto first = product.Run();
    ShuffleThreads(2);
    EXPECT_TRUE(SameBits(first, product.Run()));
  }
}

// The rows of a range have the bits that they have among all rows; the others
// are left alone. Ranges that are empty, that end within a tile, that begin
// behind one, that are longer than there are rows.
TYPED_TEST(LinearTest, RowsOutsideOfARangeAreLeftOut) {
  const std::pair<int, int> ranges[] = {{0, 0},    {0, 3},    {2, 5},
                                        {7, 7},    {17, 70},  {64, 69},
                                        {0, 1000}, {66, 1000}};
  for (const ProductShape& shape : kShapes) {
    for (const int splits : {1, 2}) {
      if (splits > shape.inputs / kLinearUnit) continue;
      auto product = this->Real(shape);
      product.splits = splits;
      const auto all = product.Run();
      product.has_range = true;
      for (const auto& [first, last] : ranges) {
        product.first_row = first;
        product.last_row = last;
        const auto some = product.Run();
        product.Check(some, 1);
        auto expected = all;
        for (int r = 0; r < shape.rows; ++r) {
          if (first <= r && r < last) continue;
          const int64_t at = r * product.wide_stride();
          std::fill_n(expected.wide.begin() + at, product.wide_stride(),
                      some.wide[at]);
          std::fill_n(expected.narrow.begin() + at, product.wide_stride(),
                      some.narrow[at]);
        }
        EXPECT_TRUE(SameBits(some, expected))
            << "rows " << first << " to " << last << " of " << shape.rows;
      }
    }
  }
}

TYPED_TEST(LinearTest, RowsDoNotMeetEachOther) {
  for (const int rows : {7, 37}) {
    auto product = this->Real({rows, 256, 64, 1});
    const auto before = product.Run();
    // Another first row changes nothing of the others, even if it is no number.
    for (int k = 0; k < 256; ++k) {
      product.x()[k] = Narrow<TypeParam>(std::nanf(""));
    }
    auto after = product.Run();
    const int64_t second = product.wide_stride();
    for (int n = 0; n < 64; ++n) EXPECT_TRUE(std::isnan(after.wide[n]));
    std::copy_n(before.wide.begin(), second, after.wide.begin());
    std::copy_n(before.narrow.begin(), second, after.narrow.begin());
    EXPECT_TRUE(SameBits(before, after));
  }
}

}  // namespace

// Kernels that LaunchLinear takes for shapes that are too large to emulate.

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

constexpr int kH100 = 132;  // processors
constexpr int kA100 = 108;

int Blocks(const LinearShape& shape) {
  const LinearPlan plan = PlanLinear(shape);
  return (shape.rows + plan.rows - 1) / plan.rows *
         ((shape.outputs + plan.outputs - 1) / plan.outputs) * shape.batch;
}

int Splits(const LinearShape& shape, int processors = kH100) {
  return LinearSplits(shape, FinishedBy::kNextKernel, processors);
}

TEST(PlanLinearTest, FewRowsFitIntoOneBlockAndStreamTheWeights) {
  for (int rows = 1; rows <= 32; ++rows) {
    const LinearPlan plan = PlanLinear({rows, 1024, 1024, 1});
    EXPECT_EQ(plan.kernel, LinearKernel::kStream);
    EXPECT_EQ(plan.rows, rows <= 16 ? 16 : 32);
    EXPECT_EQ(plan.input_warps, 4);
    EXPECT_EQ(plan.outputs, 32);
  }
  EXPECT_EQ(PlanLinear({33, 1024, 1024, 1}).kernel, LinearKernel::kTiles);
}

TEST(PlanLinearTest, WarpsShareInputsOnlyWhereEachHasAUnit) {
  const auto warps = [](int inputs) {
    return PlanLinear({1, inputs, 1024, 16}).input_warps;
  };
  EXPECT_EQ(warps(64), 1);
  EXPECT_EQ(warps(128), 2);
  EXPECT_EQ(warps(192), 2);
  EXPECT_EQ(warps(256), 4);
  EXPECT_EQ(PlanLinear({1, 64, 1024, 16}).outputs, 128);
}

TEST(PlanLinearTest, LargeTilesAreForProductsThatFillADeviceWithThem) {
  const auto side = [](const LinearShape& shape) {
    const LinearPlan plan = PlanLinear(shape);
    EXPECT_EQ(plan.kernel, LinearKernel::kTiles);
    EXPECT_EQ(plan.rows, plan.outputs);
    return plan.rows;
  };
  EXPECT_EQ(side({512, 1024, 4096, 1}), 128);
  EXPECT_EQ(side({128, 1024, 20032, 1}), 128);
  EXPECT_EQ(side({512, 1024, 1024, 1}), 64);
  EXPECT_EQ(side({64, 1024, 20032, 1}), 64);
  EXPECT_EQ(side({512, 64, 1024, 16}), 64);  // one unit of inputs
}

TEST(LinearSplitsTest, UseMostOfTheDeviceWhereTheOutputsDoNot) {
  for (const LinearShape& shape :
       {LinearShape{1, 1024, 1024, 1}, LinearShape{16, 1024, 1024, 1},
        LinearShape{16, 4096, 1024, 1}, LinearShape{8, 1024, 64, 16},
        LinearShape{32, 4096, 1024, 1}}) {
    for (const int processors : {kA100, kH100}) {
      const int blocks = Blocks(shape) * Splits(shape, processors);
      EXPECT_GT(blocks, processors / 2);
      EXPECT_LE(blocks, processors);
    }
  }
}

TEST(LinearSplitsTest, AreNotThereWhereTheOutputsFillTheDevice) {
  EXPECT_EQ(Splits({16, 1024, 4096, 1}), 1);
  EXPECT_EQ(Splits({16, 1024, 20032, 1}), 1);
  EXPECT_EQ(Splits({512, 1024, 1024, 1}), 1);
  EXPECT_EQ(Splits({512, 4096, 1024, 1}), 1);
  EXPECT_EQ(Splits({16, 1024, 1024, 1}, 1), 1);
}

// A head's values of a few rows: their own kernel that adds up would take
// longer than what is won. Many inputs and few outputs are still split.
TEST(LinearSplitsTest, AreFewerWhereAddingUpTakesAKernel) {
  const auto apart = [](const LinearShape& shape) {
    return LinearSplits(shape, FinishedBy::kOwnKernel, kH100);
  };
  for (const int rows : {1, 8, 32}) {
    const LinearShape values = {rows, 1024, 64, 16};
    EXPECT_GT(Splits(values), 1);
    EXPECT_EQ(apart(values), 1);
    EXPECT_GT(apart({rows, 16384, 64, 1}), 1);
  }
}

TEST(LinearSplitsTest, AreNeverMoreThanThereAreUnitsOfInputs) {
  for (int rows = 1; rows <= 600; rows = rows * 3 / 2 + 1) {
    for (const int inputs : {64, 128, 448, 1024}) {
      for (const int outputs : {64, 448, 1024, 20032}) {
        for (const int processors : {1, 56, kH100, 1000}) {
          const int splits = Splits({rows, inputs, outputs, 1}, processors);
          EXPECT_GE(splits, 1);
          EXPECT_LE(splits, inputs / kLinearUnit);
        }
      }
    }
  }
}

}  // namespace

}  // namespace txl::cuda
