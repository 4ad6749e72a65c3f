#pragma once

// A product as linear.h defines it, with data, and what should come out of it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "model/cuda/kernels/linear.h"
#include "tests/model/cuda/device_data.h"

namespace txl::cuda {

struct ProductShape {
  int rows = 1;
  int inputs = kLinearUnit;
  int outputs = kLinearUnit;
  int batch = 1;
};

// What rounding x to T may change: half of the last bit, or half of the
// smallest subnormal number.
template <typename T>
double Rounding(double x) {
  constexpr double kHalfBit = std::is_same_v<T, Bf16>  ? 0x1p-8
                              : std::is_same_v<T, F16> ? 0x1p-11
                                                       : 0x1p-24;
  return std::max(kHalfBit * std::abs(x), std::is_same_v<T, F16> ? 0x1p-25 : 0);
}

// tanh form of GELU as in "Gaussian Error Linear Units", arXiv:1606.08415.
inline double ActivationOf(double x, LinearActivation activation) {
  switch (activation) {
    case LinearActivation::kNone:
      return x;
    case LinearActivation::kRelu:
      return std::max(x, 0.0);
    case LinearActivation::kGeluTanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  return x;
}

// Rows lie further apart than they must; what lies between them is NaN.
template <typename T>
class Product {
 public:
  // `draw` gives the numbers of all operands.
  Product(const ProductShape& shape, const std::function<float()>& draw)
      : shape_(shape) {
    const int64_t padded_rows =
        (shape.rows + kLinearRows - 1) / kLinearRows * kLinearRows;
    x_stride_ = int64_t{shape.batch} * shape.inputs + kGap;
    out_stride_ = int64_t{shape.batch} * shape.outputs + kGap;
    x_.assign(padded_rows * x_stride_, Narrow<T>(std::nanf("")));
    for (int r = 0; r < shape.rows; ++r) {
      std::generate_n(x_.begin() + r * x_stride_, x_stride_ - kGap,
                      [&] { return Narrow<T>(draw()); });
    }
    w_.resize(int64_t{shape.batch} * shape.outputs * shape.inputs);
    std::generate(w_.begin(), w_.end(), [&] { return Narrow<T>(draw()); });
    bias_.resize(int64_t{shape.batch} * shape.outputs);
    std::generate(bias_.begin(), bias_.end(), draw);
    residual_.resize(shape.rows * out_stride_);
    std::generate(residual_.begin(), residual_.end(), draw);
  }

  // What goes into the result besides the product, and where it goes.
  LinearActivation activation = LinearActivation::kNone;
  bool has_bias = true;
  bool has_residual = true;
  bool to_wide = true;
  bool to_narrow = true;
  int rest_from = 0;  // 0: there is no rest
  int splits = 1;
  // Rows that are asked for.
  int first_row = 0;
  int last_row = std::numeric_limits<int>::max();
  bool has_range = false;  // as numbers on the device, not as all

  std::vector<T>& x() { return x_; }
  int64_t wide_stride() const { return out_stride_; }

  struct Result {
    std::vector<float> wide;
    std::vector<T> narrow;
    std::vector<float> rest;
  };
  using Launch = std::function<void(Stream&, const LinearArgs<T>&)>;
  Result Run(const Launch& launch) const;
  Result Run() const {
    return Run([](Stream& stream, const LinearArgs<T>& args) {
      LaunchLinear(stream, args);
    });
  }

  struct Number {
    double value = 0;
    double magnitude = 0;  // sum of the absolute values of what was added
  };
  Number Expected(int r, int b, int n) const;
  // Everything that should be written is right to `factor` times what float32
  // sums and T may lose; nothing else was written.
  void Check(const Result& result, double factor) const;

 private:
  static constexpr int kGap = 64;

  int64_t OutIndex(int r, int b, int n) const {
    return r * out_stride_ + int64_t{b} * shape_.outputs + n;
  }
  int rest_outputs() const {
    return rest_from > 0 ? shape_.outputs - rest_from : 0;
  }
  bool IsRest(int n) const { return rest_from > 0 && n >= rest_from; }

  ProductShape shape_;
  int64_t x_stride_ = 0;
  int64_t out_stride_ = 0;
  std::vector<T> x_;
  std::vector<T> w_;
  std::vector<float> bias_;
  std::vector<float> residual_;
};

template <typename T>
typename Product<T>::Result Product<T>::Run(const Launch& launch) const {
  const Array<T> x = ToDevice(x_);
  const Array<T> w = ToDevice(w_);
  const Array<float> bias = ToDevice(bias_);
  const Array<float> residual = ToDevice(residual_);
  const int64_t size = shape_.rows * out_stride_;
  const Array<float> wide = Unwritten<float>(size);
  const Array<T> narrow = Unwritten<T>(size);
  const Array<float> rest =
      Unwritten<float>(int64_t{shape_.rows} * shape_.batch * rest_outputs());
  const Array<float> partial =
      Unwritten<float>(int64_t{splits} * shape_.rows * bias_.size());
  LinearArgs<T> args;
  args.rows = shape_.rows;
  args.inputs = shape_.inputs;
  args.outputs = shape_.outputs;
  args.batch = shape_.batch;
  args.x = x.data();
  args.x_stride = x_stride_;
  args.x_batch = shape_.inputs;
  args.w = w.data();
  args.bias = has_bias ? bias.data() : nullptr;
  args.residual = has_residual ? residual.data() : nullptr;
  args.activation = activation;
  args.wide = to_wide ? wide.data() : nullptr;
  args.narrow = to_narrow ? narrow.data() : nullptr;
  args.out_stride = out_stride_;
  args.out_batch = shape_.outputs;
  args.rest = rest_from > 0 ? rest.data() : nullptr;
  args.rest_from = rest_from;
  args.splits = splits;
  args.partial = splits > 1 ? partial.data() : nullptr;
  const Array<int32_t> range = ToDevice<int32_t>({first_row, last_row});
  if (has_range) args.range = {range.data(), range.data() + 1};
  Stream stream;
  launch(stream, args);
  if (splits > 1) LaunchFinishLinear(stream, args);
  stream.Wait();
  return {ToHost(wide), ToHost(narrow), ToHost(rest)};
}

template <typename T>
typename Product<T>::Number Product<T>::Expected(int r, int b, int n) const {
  Number sum;
  const auto add = [&sum](double x) {
    sum.value += x;
    sum.magnitude += std::abs(x);
  };
  const T* x = x_.data() + r * x_stride_ + int64_t{b} * shape_.inputs;
  const T* w =
      w_.data() + (int64_t{b} * shape_.outputs + n) * int64_t{shape_.inputs};
  for (int k = 0; k < shape_.inputs; ++k) {
    add(double{Widen(x[k])} * double{Widen(w[k])});
  }
  if (has_bias) add(bias_[int64_t{b} * shape_.outputs + n]);
  sum.value = ActivationOf(sum.value, activation);
  if (has_residual && !IsRest(n)) add(residual_[OutIndex(r, b, n)]);
  return sum;
}

template <typename T>
void Product<T>::Check(const Result& result, double factor) const {
  const auto check = [&](double found, bool wanted, const Number& number,
                         double rounding) {
    if (!wanted) return std::isnan(found);
    // Activations are at most 1.13 times as steep as their input.
    const double lost =
        1.2 * (shape_.inputs + 8) * 0x1p-23 * number.magnitude + rounding;
    return std::abs(found - number.value) <= factor * lost;
  };
  int64_t wrong = 0;
  for (int r = 0; r < shape_.rows; ++r) {
    const bool is_asked = first_row <= r && r < last_row;
    for (int64_t at = 0; at < out_stride_; ++at) {
      const double wide = result.wide[r * out_stride_ + at];
      const double narrow = Widen(result.narrow[r * out_stride_ + at]);
      if (at >= out_stride_ - kGap || !is_asked) {
        wrong += !std::isnan(wide) || !std::isnan(narrow);
        continue;
      }
      const int b = static_cast<int>(at / shape_.outputs);
      const int n = static_cast<int>(at % shape_.outputs);
      const Number number = Expected(r, b, n);
      wrong += !check(wide, to_wide && !IsRest(n), number, 0) ||
               !check(narrow, to_narrow && !IsRest(n), number,
                      Rounding<T>(number.value));
    }
    for (int at = 0; at < shape_.batch * rest_outputs(); ++at) {
      const Number number =
          Expected(r, at / rest_outputs(), rest_from + at % rest_outputs());
      const int64_t row = int64_t{r} * shape_.batch * rest_outputs();
      wrong += !check(result.rest[row + at], is_asked, number, 0);
    }
  }
  EXPECT_EQ(wrong, 0) << shape_.rows << " rows, " << shape_.inputs
                      << " inputs, " << shape_.outputs << " outputs, batch "
                      << shape_.batch << ", " << splits << " splits";
}

}  // namespace txl::cuda
