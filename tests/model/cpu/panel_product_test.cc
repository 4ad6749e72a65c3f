// The product against plain loops in double precision, and its promise about
// bits: an element's sum does not depend on what is computed beside it.

#include "model/cpu/panel_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "model/cpu/vector_target.h"

namespace txl {
namespace {

std::vector<float> Random(int64_t size, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float& value : values) value = normal(random);
  return values;
}

struct PanelOperands {
  int64_t rows, k, columns;
  std::vector<float> a, b;

  PanelOperands(int64_t rows, int64_t k, int64_t columns, std::mt19937& random)
      : rows(rows),
        k(k),
        columns(columns),
        a(Random(rows * k, random)),
        b(Random(k * columns, random)) {}

  PanelProduct Product(std::vector<float>& out) const {
    PanelProduct product;
    product.a = a.data();
    product.a_stride = k;
    product.rows = rows;
    product.b = b.data();
    product.b_stride = columns;
    product.k = k;
    product.columns = columns;
    product.out = out.data();
    product.out_stride = columns;
    return product;
  }
};

void ExpectPlainSums(int64_t k) {
  std::mt19937 random(1);
  for (const int64_t rows : {1, 2, 5, 6, 7, 13}) {
    for (const int64_t columns : {16, 32, 48, 64, 80, 128}) {
      const PanelOperands operands(rows, k, columns, random);
      std::vector<float> out(rows * columns, 99);
      MultiplyPanel(operands.Product(out));
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          double sum = 0;
          for (int64_t k = 0; k < operands.k; ++k) {
            sum += double{operands.a[r * operands.k + k]} *
                   operands.b[k * columns + c];
          }
          ASSERT_NEAR(out[r * columns + c], sum, 1e-4)
              << rows << " rows, " << columns << " columns";
        }
      }
    }
  }
}

TEST(MultiplyPanel, EqualsThePlainSum) { ExpectPlainSums(37); }

TEST(MultiplyPanel, EqualsThePlainSumInSeveralChunks) { ExpectPlainSums(150); }

TEST(MultiplyPanel, ASumContinuedLaterHasTheSameBits) {
  std::mt19937 random(3);
  const PanelOperands operands(5, 100, 64, random);
  std::vector<float> whole(5 * 64), parts(5 * 64);
  MultiplyPanel(operands.Product(whole));
  for (const auto& [begin, end] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 60}, {60, 100}}) {
    PanelProduct product = operands.Product(parts);
    product.a += begin;
    product.b = operands.b.data() + begin * 64;
    product.k = end - begin;
    product.accumulate = true;
    MultiplyPanel(product);
  }
  EXPECT_EQ(whole, parts);
}

// b as MultiplyRows reads it: `columns` rows of k numbers, stride apart, in a
// narrow format, and the numbers that these really are.
struct TurnedRows {
  TurnedRows(int64_t columns, int64_t k, NumberFormat format,
             std::mt19937& random)
      : stride(k + kColumnGroup),
        bytes(columns * stride * NumberBytes(format)),
        numbers(Random(columns * k, random)) {
    for (int64_t c = 0; c < columns; ++c) {
      uint8_t* row = bytes.data() + c * stride * NumberBytes(format);
      NarrowRow(numbers.data() + c * k, k, format, row);
      WidenRow(row, format, k, numbers.data() + c * k);
    }
  }

  int64_t stride;
  std::vector<uint8_t> bytes;
  std::vector<float> numbers;  // [columns, k]
};

PanelProduct RowsProduct(const std::vector<float>& a, int64_t rows, int64_t k,
                         const TurnedRows& b, NumberFormat format,
                         std::vector<float>& out) {
  const int64_t columns = static_cast<int64_t>(b.numbers.size()) / k;
  PanelProduct product;
  product.a = a.data();
  product.a_stride = k;
  product.rows = rows;
  product.b = b.bytes.data();
  product.b_stride = b.stride;
  product.b_format = format;
  product.k = k;
  product.columns = columns;
  product.out = out.data();
  product.out_stride = columns;
  return product;
}

TEST(MultiplyRows, EqualsThePlainSumInEveryFormat) {
  std::mt19937 random(11);
  for (const NumberFormat format :
       {NumberFormat::kF32, NumberFormat::kBF16, NumberFormat::kF16}) {
    for (const int64_t rows : {1, 2, 4, 5, 11}) {
      for (const int64_t k : {16, 48, 160}) {
        constexpr int64_t kColumns = 12;
        const std::vector<float> a = Random(rows * k, random);
        const TurnedRows b(kColumns, k, format, random);
        std::vector<float> out(rows * kColumns, 99);
        MultiplyRows(RowsProduct(a, rows, k, b, format, out));
        for (int64_t i = 0; i < rows * kColumns; ++i) {
          double sum = 0;
          for (int64_t j = 0; j < k; ++j) {
            sum += double{a[i / kColumns * k + j]} *
                   b.numbers[i % kColumns * k + j];
          }
          ASSERT_NEAR(out[i], sum, 1e-4) << rows << " rows, k " << k;
        }
      }
    }
  }
}

TEST(MultiplyRows, ARowsBitsDoNotDependOnItsCompany) {
  std::mt19937 random(12);
  constexpr int64_t kRows = 9, kInner = 80, kColumns = 64;
  const std::vector<float> a = Random(kRows * kInner, random);
  const TurnedRows b(kColumns, kInner, NumberFormat::kF32, random);
  std::vector<float> together(kRows * kColumns), alone(kColumns);
  MultiplyRows(RowsProduct(a, kRows, kInner, b, NumberFormat::kF32, together));
  for (int64_t r = 0; r < kRows; ++r) {
    PanelProduct product =
        RowsProduct(a, 1, kInner, b, NumberFormat::kF32, alone);
    product.a += r * kInner;
    MultiplyRows(product);
    EXPECT_EQ(std::memcmp(alone.data(), together.data() + r * kColumns,
                          kColumns * sizeof(float)),
              0)
        << "row " << r;
  }
}

class EveryTarget : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(UseVectorTarget(GetParam())); }
  void TearDown() override { UseVectorTarget(VectorTargets().front()); }
};

INSTANTIATE_TEST_SUITE_P(Machine, EveryTarget,
                         testing::ValuesIn(VectorTargets()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

// Several rows go through the panel in chunks, of 64 numbers of a column in
// float32, many rows in chunks of 256, a single row goes through it at once;
// all may go on from `out`.
void ExpectBitsOfEachAlone(int64_t rows, int64_t depth) {
  std::mt19937 random(6);
  constexpr int64_t kColumns = 112;
  const PanelOperands all(rows, depth, kColumns, random);
  const std::vector<float> start = Random(rows * kColumns, random);
  for (const NumberFormat format :
       {NumberFormat::kF32, NumberFormat::kBF16, NumberFormat::kF16}) {
    std::vector<uint8_t> b(all.b.size() * NumberBytes(format));
    NarrowRow(all.b.data(), depth * kColumns, format, b.data());
    for (const bool accumulate : {false, true}) {
      std::vector<float> together = start, alone = start;
      PanelProduct product = all.Product(together);
      product.b = b.data();
      product.b_format = format;
      product.accumulate = accumulate;
      MultiplyPanel(product);
      product.rows = 1;
      for (int64_t r = 0; r < rows; ++r) {
        product.a = all.a.data() + r * depth;
        product.out = alone.data() + r * kColumns;
        MultiplyPanel(product);
      }
      EXPECT_EQ(together, alone) << static_cast<int>(format);
    }
  }
}

TEST_P(EveryTarget, SeveralRowsHaveTheBitsOfEachAlone) {
  ExpectBitsOfEachAlone(23, 300);
}

TEST_P(EveryTarget, ManyRowsHaveTheBitsOfEachAlone) {
  ExpectBitsOfEachAlone(70, 1100);
}

// IEEE 754 binary16: 5 bits of exponent, biased by 15, 10 behind the point.
double ValueOfHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = (bits & 1023) / 1024.0;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, -14);
  if (exponent < 31) return sign * std::ldexp(1 + fraction, exponent - 15);
  return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                       : std::numeric_limits<double>::quiet_NaN();
}

TEST_P(EveryTarget, WidensEveryHalfAndNarrowsItBack) {
  std::vector<uint16_t> halves(65536), back(65536);
  std::iota(halves.begin(), halves.end(), uint16_t{0});
  std::vector<float> wide(65536);
  WidenRow(halves.data(), NumberFormat::kF16, 65536, wide.data());
  NarrowRow(wide.data(), 65536, NumberFormat::kF16, back.data());
  for (size_t i = 0; i < halves.size(); ++i) {
    const double expected = ValueOfHalf(halves[i]);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide[i])) << i;
      ASSERT_TRUE(std::isnan(ValueOfHalf(back[i]))) << i;
    } else {
      ASSERT_EQ(wide[i], expected) << i;
      ASSERT_EQ(back[i], halves[i]) << i;
    }
  }
}

// Between two neighbours the nearer one, exactly between the even one; beyond
// the last one infinity from where the next would be nearer.
TEST_P(EveryTarget, RoundsToTheNearestHalf) {
  std::vector<float> x;
  std::vector<uint16_t> expected;
  for (uint16_t bits = 0; bits < 0x7bff; bits += 37) {
    const double low = ValueOfHalf(bits), high = ValueOfHalf(bits + 1);
    const float middle = static_cast<float>((low + high) / 2);
    const auto even = static_cast<uint16_t>(bits + (bits & 1));
    x.insert(x.end(), {std::nextafter(middle, 0.0f), middle,
                       std::nextafter(middle, 1e9f), -middle});
    expected.insert(expected.end(),
                    {bits, even, static_cast<uint16_t>(bits + 1),
                     static_cast<uint16_t>(even | 0x8000)});
  }
  x.insert(x.end(), {65519.0f, 65520.0f, 1e30f});
  expected.insert(expected.end(), {0x7bff, 0x7c00, 0x7c00});
  std::vector<uint16_t> narrow(x.size());
  NarrowRow(x.data(), static_cast<int64_t>(x.size()), NumberFormat::kF16,
            narrow.data());
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(narrow[i], expected[i]) << x[i];
  }
}

TEST_P(EveryTarget, RoundsToNearestTiesToEven) {
  // One, one and a half unit more, exactly between two numbers, and no number.
  const std::vector<float> x = {1.0f,
                                1.0f + 3.0f / 256,
                                1.0f + 1.0f / 256,
                                1.0f + 1.0f / 2048,
                                1.0f + 3.0f / 2048,
                                -2.5f,
                                0.0f,
                                std::numeric_limits<float>::quiet_NaN()};
  std::vector<uint16_t> narrow(x.size());
  std::vector<float> wide(x.size());
  const auto there_and_back = [&](NumberFormat format) {
    NarrowRow(x.data(), static_cast<int64_t>(x.size()), format, narrow.data());
    WidenRow(narrow.data(), format, static_cast<int64_t>(x.size()),
             wide.data());
  };
  there_and_back(NumberFormat::kBF16);  // 7 bits behind the point
  EXPECT_EQ(wide[0], 1.0f);
  EXPECT_EQ(wide[1], 1.0f + 4.0f / 256);
  EXPECT_EQ(wide[2], 1.0f);
  EXPECT_EQ(wide[5], -2.5f);
  EXPECT_EQ(wide[6], 0.0f);
  EXPECT_TRUE(std::isnan(wide[7]));
  there_and_back(NumberFormat::kF16);  // 10 bits
  EXPECT_EQ(wide[1], x[1]);
  EXPECT_EQ(wide[3], 1.0f);
  EXPECT_EQ(wide[4], 1.0f + 4.0f / 2048);
  EXPECT_TRUE(std::isnan(wide[7]));
}

}  // namespace
}  // namespace txl
