// Products with weights of 4 bits that are never unpacked: on every instruction
// set of the machine the bits of a product with the unpacked numbers.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "model/cpu/aligned_buffer.h"
#include "model/cpu/int4_panel.h"
#include "model/cpu/integer_product.h"
#include "model/cpu/packed_matrix.h"
#include "model/cpu/vector_target.h"

namespace txl {
namespace {

// A panel of weights, and rows of whole numbers that end where they are read.
class Int4Product : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(UseVectorTarget(GetParam())); }
  void TearDown() override { UseVectorTarget(VectorTargets().front()); }

  // Makes weight(k, output) the panel's and number(row, k) the rows'.
  template <class Weight, class Number>
  void Make(int64_t rows, int64_t inputs, const Weight& weight,
            const Number& number) {
    inputs_ = inputs;
    panel_.assign(Int4PanelBytes(inputs), 0);
    std::vector<float> of_output(inputs);
    for (int64_t n = 0; n < kPanel; ++n) {
      for (int64_t k = 0; k < inputs; ++k) of_output[k] = weight(k, n);
      scales_[n] = PackInt4Output(of_output.data(), inputs, n, panel_.data());
    }
    numbers_.assign(rows * inputs, 0);
    rows_.assign(rows, {});
    for (int64_t r = 0; r < rows; ++r) {
      rows_[r].scale = 0.01f * static_cast<float>(r + 1);
      for (int64_t k = 0; k < inputs; ++k) {
        numbers_[r * inputs + k] = number(r, k);
        rows_[r].sum += numbers_[r * inputs + k];
      }
    }
  }

  IntegerProduct Product(const void* b, std::vector<float>& out) const {
    IntegerProduct product;
    product.a = {numbers_.data(), inputs_, rows_.data(), 1};
    product.rows = static_cast<int64_t>(rows_.size());
    product.b = static_cast<const int8_t*>(b);
    product.b_scales = scales_;
    product.k = inputs_;
    product.out = out.data();
    product.out_stride = kPanel;
    return product;
  }
  std::vector<float> Fused() const {
    std::vector<float> out(numbers_.size() / inputs_ * kPanel, -1);
    MultiplyInt4(Product(panel_.data(), out));
    return out;
  }
  // By way of numbers of 8 bits in memory.
  std::vector<float> Unpacked() const {
    const int64_t groups = RoundUp(inputs_, kInt4Group) / kInt4Group;
    AlignedBuffer<int8_t> quads(groups * kInt4Group * kPanel);
    UnpackInt4Quads(panel_.data(), groups, quads.data());
    std::vector<float> out(numbers_.size() / inputs_ * kPanel, -2);
    MultiplyIntegers(Product(quads.data(), out));
    return out;
  }
  // From the description of the format alone.
  void ExpectExact(const std::vector<float>& out) const {
    std::vector<float> row(inputs_);
    for (int64_t n = 0; n < kPanel; ++n) {
      UnpackInt4Output(panel_.data(), n, inputs_, row.data());
      for (size_t r = 0; r < rows_.size(); ++r) {
        int64_t sum = 0;
        for (int64_t k = 0; k < inputs_; ++k) {
          sum +=
              int64_t{numbers_[r * inputs_ + k]} * static_cast<int64_t>(row[k]);
        }
        ASSERT_EQ(out[r * kPanel + n],
                  static_cast<float>(sum) * (rows_[r].scale * scales_[n]))
            << rows_.size() << " rows, " << inputs_ << " inputs: " << r << ", "
            << n;
      }
    }
  }

 private:
  int64_t inputs_ = 0;
  std::vector<uint8_t> panel_;
  float scales_[kPanel] = {};
  std::vector<int8_t> numbers_;
  std::vector<IntegerRow> rows_;
};

INSTANTIATE_TEST_SUITE_P(Machine, Int4Product,
                         testing::ValuesIn(VectorTargets()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

// Rows lie without a gap and end at their last input, whatever a group has.
TEST_P(Int4Product, HasTheBitsOfUnpackedNumbersForEveryCountOfRows) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int64_t rows = 1; rows <= kInt4FewRows; ++rows) {
    for (const int64_t inputs : {4, 28, 32, 36, 128, 132, 252, 412, 1024}) {
      Make(
          rows, inputs, [&](int64_t, int64_t) { return normal(random); },
          [&](int64_t, int64_t) {
            return static_cast<int8_t>(static_cast<int>(random() % 255) - 127);
          });
      const std::vector<float> fused = Fused();
      ASSERT_EQ(fused, Unpacked()) << rows << " rows, " << inputs << " inputs";
      ExpectExact(fused);
    }
  }
}

// The largest codes, zeros and steps beside the largest numbers: all sums at
// their ends, over as many inputs as a product may have.
TEST_P(Int4Product, SumsOfTheLargestNumbersAreExact) {
  for (const int64_t inputs : {32, 1 << 16}) {
    Make(
        2, inputs,
        [&](int64_t k, int64_t n) {
          return n % 3 == 0 ? -1.0f : n % 3 == 1 ? 1.0f : k % 2 == 0 ? 1 : -1;
        },
        [&](int64_t row, int64_t k) {
          const bool negative = row == 1 && k % 2 == 1;
          return static_cast<int8_t>(negative ? -127 : 127);
        });
    const std::vector<float> fused = Fused();
    ASSERT_EQ(fused, Unpacked()) << inputs;
    ExpectExact(fused);
  }
}

// Whether few rows are multiplied as they lie, or many by unpacked numbers, is
// nobody's business: a row has the same bits in any company.
TEST_P(Int4Product, RowsHaveTheSameBitsInAnyCompanyAndOnAnyThreads) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  constexpr int64_t kOutputs = 150, kInputs = 620, kRows = 9, kStride = 192;
  std::vector<float> weights(kOutputs * kInputs), x(kRows * kInputs);
  for (float& weight : weights) weight = normal(random);
  for (float& number : x) number = normal(random);
  const PackedMatrix packed(weights.data(), kOutputs, kInputs,
                            NumberFormat::kInt4, Products::kInteger);
  const auto products = [&](int64_t first, int64_t rows, int threads) {
    ThreadPool pool(threads);
    IntegerRows integers;
    std::vector<float> out(rows * kStride);
    ApplyLinear({&packed},
                {rows,
                 {x.data() + first * kInputs, kInputs},
                 {},
                 out.data(),
                 kStride,
                 &integers},
                pool);
    return out;
  };
  const std::vector<float> together = products(0, kRows, 1);
  for (const int threads : {1, 3}) {
    for (int64_t rows = 1; rows <= 6; ++rows) {
      for (int64_t first = 0; first + rows <= kRows; ++first) {
        const std::vector<float> some = products(first, rows, threads);
        const auto expected = together.begin() + first * kStride;
        for (int64_t i = 0; i < rows * kStride; ++i) {
          if (i % kStride >= kOutputs) continue;
          ASSERT_EQ(some[i], expected[i]) << rows << " from " << first;
        }
      }
    }
  }
}

}  // namespace
}  // namespace txl
