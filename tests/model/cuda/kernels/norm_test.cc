#include "model/cuda/kernels/norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tests/model/cuda/device_data.h"
#include "tests/model/cuda/kernels/linear_product.h"

namespace txl::cuda {
namespace {

constexpr float kEps = 1e-5f;

std::vector<float> Draw(int64_t size, uint32_t seed, float mean = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(mean, 1);
  std::vector<float> numbers(size);
  std::generate(numbers.begin(), numbers.end(), [&] { return normal(random); });
  return numbers;
}

// Rows of `width` numbers, their operands, and where results go.
template <typename T>
struct Rows {
  int rows;
  int width;
  int64_t stride = (width + kLinearUnit - 1) / kLinearUnit * kLinearUnit;
  int splits = 6;  // more than a thread has on their way
  // Far from 0, so that a variance of squares alone would be lost.
  std::vector<float> wide_in = Draw(rows * stride, 1, 100);
  std::vector<float> partial = Draw(splits * rows * stride, 2);
  std::vector<float> residual = Draw(rows * stride, 3);
  std::vector<float> bias = Draw(stride, 4);
  std::vector<float> gain = Draw(stride, 5);
  std::vector<float> shift = Draw(stride, 6);

  NormArgs<T> Args() const {
    NormArgs<T> args;
    args.rows = rows;
    args.width = width;
    args.stride = stride;
    args.splits = splits;
    args.eps = kEps;
    return args;
  }
  // x of a row as the header defines it, from partial sums.
  std::vector<double> Sum(int r, LinearActivation activation) const {
    std::vector<double> x(width);
    for (int k = 0; k < width; ++k) {
      const int64_t at = r * stride + k;
      for (int s = 0; s < splits; ++s) x[k] += partial[s * rows * stride + at];
      x[k] = ActivationOf(x[k] + bias[k], activation) + residual[at];
    }
    return x;
  }
  std::vector<double> WideIn(int r) const {
    const auto first = wide_in.begin() + r * stride;
    return std::vector<double>(first, first + width);
  }
  std::vector<double> Normalized(const std::vector<double>& x) const {
    double mean = 0;
    double variance = 0;
    for (const double number : x) mean += number / width;
    for (const double number : x) {
      variance += (number - mean) * (number - mean) / width;
    }
    std::vector<double> y(width);
    for (int k = 0; k < width; ++k) {
      y[k] = (x[k] - mean) / std::sqrt(variance + kEps) * gain[k] + shift[k];
    }
    return y;
  }
};

// Row r of `found` is `expected` to `tolerance`, zeros behind it.
template <typename T, typename N>
void ExpectRow(const std::vector<N>& found, const Rows<T>& rows, int r,
               const std::vector<double>& expected, double tolerance) {
  for (int k = 0; k < rows.stride; ++k) {
    const double number = Widen(found[r * rows.stride + k]);
    const double wanted = k < rows.width ? expected[k] : 0;
    EXPECT_LE(std::abs(number - wanted),
              k < rows.width ? tolerance + Rounding<N>(wanted) : 0)
        << "row " << r << ", column " << k << ": " << number << ", should be "
        << wanted;
  }
}

template <typename T>
class NormTest : public ::testing::Test {};
using NormFormats = ::testing::Types<float, Bf16, F16>;
TYPED_TEST_SUITE(NormTest, NormFormats);

// One column, widths that fill nothing, one round of a block's threads, two,
// more than a block's shared memory has for weights.
const Rows<int> kSizes[] = {{3, 1},    {1, 64},   {5, 413},
                            {2, 1024}, {2, 1090}, {1, 6200}};

TYPED_TEST(NormTest, NormalizesWideRows) {
  for (const auto& size : kSizes) {
    const Rows<TypeParam> rows = {size.rows, size.width};
    const Array<float> in = ToDevice(rows.wide_in);
    const Array<float> gain = ToDevice(rows.gain);
    const Array<float> shift = ToDevice(rows.shift);
    const Array<float> wide = Unwritten<float>(rows.rows * rows.stride);
    const Array<TypeParam> narrow =
        Unwritten<TypeParam>(rows.rows * rows.stride);
    NormArgs<TypeParam> args = rows.Args();
    args.wide_in = in.data();
    args.gain = gain.data();
    args.shift = shift.data();
    args.wide = wide.data();
    args.narrow = narrow.data();
    Stream stream;
    LaunchNorm(stream, args);
    stream.Wait();
    for (int r = 0; r < rows.rows; ++r) {
      const auto expected = rows.Normalized(rows.WideIn(r));
      ExpectRow(ToHost(wide), rows, r, expected, 2e-4);
      ExpectRow(ToHost(narrow), rows, r, expected, 2e-4);
    }
  }
}

TYPED_TEST(NormTest, AddsSplitSumsBiasAndResidualFirst) {
  for (const auto& size : kSizes) {
    for (const auto activation :
         {LinearActivation::kNone, LinearActivation::kRelu,
          LinearActivation::kGeluTanh}) {
      const Rows<TypeParam> rows = {size.rows, size.width};
      const Array<float> partial = ToDevice(rows.partial);
      const Array<float> residual = ToDevice(rows.residual);
      const Array<float> bias = ToDevice(rows.bias);
      const Array<float> gain = ToDevice(rows.gain);
      const Array<float> shift = ToDevice(rows.shift);
      const Array<float> sum = Unwritten<float>(rows.rows * rows.stride);
      NormArgs<TypeParam> args = rows.Args();
      args.partial = partial.data();
      args.activation = activation;
      args.bias = bias.data();
      args.residual = residual.data();
      args.sum = sum.data();
      args.gain = gain.data();
      args.shift = shift.data();
      args.wide = residual.data();  // in place
      Stream stream;
      LaunchNorm(stream, args);
      stream.Wait();
      for (int r = 0; r < rows.rows; ++r) {
        const auto x = rows.Sum(r, activation);
        ExpectRow(ToHost(sum), rows, r, x, 1e-5);
        // A single column leaves nothing but rounding to be scaled.
        ExpectRow(ToHost(residual), rows, r, rows.Normalized(x),
                  rows.width == 1 ? 3e-3 : 1e-4);
      }
    }
  }
}

TYPED_TEST(NormTest, WithoutGainOnlyAdds) {
  const Rows<TypeParam> rows = {3, 130};
  const Array<float> partial = ToDevice(rows.partial);
  const Array<float> residual = ToDevice(rows.residual);
  const Array<float> bias = ToDevice(rows.bias);
  const Array<TypeParam> narrow = Unwritten<TypeParam>(rows.rows * rows.stride);
  NormArgs<TypeParam> args = rows.Args();
  args.partial = partial.data();
  args.bias = bias.data();
  args.residual = residual.data();
  args.sum = residual.data();
  args.narrow = narrow.data();
  Stream stream;
  LaunchNorm(stream, args);
  stream.Wait();
  for (int r = 0; r < rows.rows; ++r) {
    const auto x = rows.Sum(r, LinearActivation::kNone);
    ExpectRow(ToHost(residual), rows, r, x, 1e-5);
    ExpectRow(ToHost(narrow), rows, r, x, 1e-5);
  }
}

TYPED_TEST(NormTest, GivesTheSameBitsInWhateverOrderThreadsRun) {
  const Rows<TypeParam> rows = {4, 700};
  const Array<float> in = ToDevice(rows.wide_in);
  const Array<float> gain = ToDevice(rows.gain);
  const Array<float> shift = ToDevice(rows.shift);
  std::vector<std::vector<float>> results;
  for (const int seed : {1, 2}) {
    const Array<float> wide = Unwritten<float>(rows.rows * rows.stride);
    NormArgs<TypeParam> args = rows.Args();
    args.wide_in = in.data();
    args.gain = gain.data();
    args.shift = shift.data();
    args.wide = wide.data();
    ShuffleThreads(seed);
    Stream stream;
    LaunchNorm(stream, args);
    stream.Wait();
    results.push_back(ToHost(wide));
  }
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace txl::cuda
