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
}  // namespace txl::cuda
