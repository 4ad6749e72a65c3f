// Integer products against plain loops, on every instruction set of the
// machine: the same numbers to the bit, whatever is computed beside them.

#include "model/cpu/integer_product.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "model/cpu/vector_target.h"
#include "tests/model/cpu/integer_cases.h"

namespace txl {
namespace {

class IntegerTargets : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(UseVectorTarget(GetParam())); }
  void TearDown() override { UseVectorTarget(VectorTargets().front()); }
};

INSTANTIATE_TEST_SUITE_P(Machine, IntegerTargets,
                         testing::ValuesIn(VectorTargets()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

TEST_P(IntegerTargets, ProductsAreExactSumsTimesScales) {
  std::mt19937 random(1);
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 20, 32, 41}) {
    for (const int64_t k : {4, 12, 64, 68, 300}) {
      ExpectPlainProducts(MultiplyIntegers, {rows, k}, random);
    }
  }
}

TEST_P(IntegerTargets, APanelMayHaveFewerColumns) {
  std::mt19937 random(5);
  for (const int64_t columns : {16, 32, 48}) {
    for (const int64_t rows : {1, 4, 6, 8, 11, 12, 16, 17, 31, 64}) {
      for (const int64_t k : {4, 64, 300}) {
        ExpectPlainProducts(MultiplyIntegers, {rows, k, columns}, random);
      }
    }
  }
}

TEST_P(IntegerTargets, TheLargestSumsDoNotOverflow) {
  std::mt19937 random(2);
  constexpr int64_t kInputs = 1 << 16;
  for (const int64_t rows : {1, 8}) {
    for (const int a : {-127, 127}) {
      IntegerOperands operands({rows, kInputs}, random);
      std::fill(operands.a.begin(), operands.a.end(), static_cast<int8_t>(a));
      std::fill(operands.b.begin(), operands.b.end(), int8_t{127});
      std::fill(operands.quads.begin(), operands.quads.end(), int8_t{127});
      for (IntegerRow& row : operands.a_rows) {
        row.sum = static_cast<int32_t>(kInputs * a);
      }
      std::vector<float> out(rows * kPanel);
      MultiplyIntegers(operands.Product(out));
      for (int64_t r = 0; r < rows; ++r) {
        EXPECT_EQ(out[r * kPanel], operands.Expected(r, 0));
        EXPECT_EQ(out[r * kPanel + 63], operands.Expected(r, 63));
      }
    }
  }
}

// Pieces along k: the sums wait in `out`.
TEST_P(IntegerTargets, APieceGoesOnWhereTheLastOneEnded) {
  std::mt19937 random(4);
  for (const int64_t rows : {1, 4, 9, 35}) {
    const IntegerOperands operands({rows, 300}, random);
    std::vector<float> out(rows * kPanel, 99);
    for (int64_t k = 0; k < 300; k += 100) {
      IntegerProduct piece = operands.Product(out);
      piece.a.data += k;
      piece.b += k * kPanel;
      piece.k = 100;
      piece.goes_on = k > 0;
      piece.ends = k == 200;
      piece.next = operands.quads.data();
      MultiplyIntegers(piece);
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < kPanel; ++c) {
        ASSERT_EQ(out[r * kPanel + c], operands.Expected(r, c)) << r;
      }
    }
  }
}

TEST_P(IntegerTargets, RowsMayLieApart) {
  std::mt19937 random(3);
  const IntegerOperands operands({6, 32}, random);
  std::vector<float> out(2 * kPanel, 99);
  IntegerProduct product = operands.Product(out);
  product.a = {operands.a.data() + 32, 3 * 32, operands.a_rows.data() + 1, 3};
  product.rows = 2;
  MultiplyIntegers(product);
  for (int64_t c = 0; c < kPanel; ++c) {
    EXPECT_EQ(out[c], operands.Expected(1, c));
    EXPECT_EQ(out[kPanel + c], operands.Expected(4, c));
  }
}

TEST_P(IntegerTargets, ATileHasItsRowsInQuads) {
  std::mt19937 random(6);
  constexpr int64_t kStride = 100;
  const std::vector<int8_t> rows = WholeNumbers(kPanel * kStride, random);
  for (const int64_t columns : {16, 48, 64, 80}) {
    std::vector<int8_t> tile(kPanel * columns + 1, 99);
    InterleaveTile(rows.data(), kStride, columns, tile.data());
    for (int64_t j = 0; j < kPanel; ++j) {
      for (int64_t c = 0; c < columns; ++c) {
        ASSERT_EQ(tile[(j / 4 * columns + c) * 4 + j % 4],
                  rows[j * kStride + c]);
      }
    }
    EXPECT_EQ(tile.back(), 99);
  }
}

// As many positions as there may be, all of one weight and of one value.
TEST_P(IntegerTargets, SumsOfTheLargestValuesAreExact) {
  constexpr int64_t kPanels = 8;
  constexpr int64_t kPositions = kPanels * kPanel;
  const std::vector<uint8_t> most(kPositions, 255);
  const float scale = 1;
  for (const int8_t value : {127, -127}) {
    const std::vector<int8_t> tile(kPanel * kColumnGroup, value);
    const std::vector<const int8_t*> tiles(kPanels, tile.data());
    std::vector<float> out(kColumnGroup, 99);
    SumIntegers({most.data(), most.data(), kPositions, &scale, 1, tiles.data(),
                 kPanels, kColumnGroup, out.data(), kColumnGroup});
    // 65535 * 512 * 127 has 32 bits; a float keeps 24 of them.
    const double exact = 65535.0 * kPositions * value;
    for (const float sum : out) EXPECT_NEAR(sum, exact, 256);
  }
}

TEST_P(IntegerTargets, SumsOfValuesAreExact) {
  std::mt19937 random(7);
  for (const int64_t rows : {1, 2, 3, 4, 6, 16, 19}) {
    for (const int64_t columns : {16, 48, 64, 80, 128}) {
      ExpectPlainSums(SumIntegers, {rows, 1, columns}, random);
      ExpectPlainSums(SumIntegers, {rows, 8, columns}, random);
    }
  }
}

}  // namespace
}  // namespace txl
