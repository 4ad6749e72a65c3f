#include "model/cuda/step/cuda_products.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/model/cuda/device_data.h"
#include "tests/model/cuda/step/random_case.h"

namespace txl::cuda {
namespace {

constexpr int kHeads = 3;
constexpr int kOutputs = 70;  // padded to 128
constexpr int kInputs = 400;  // padded to 448
constexpr int kRows = 5;
constexpr int64_t kSumsSize = 8 * 16 * kHeads * 128;

// Small multiples of 1/8: products and sums are exact in float32.
std::vector<float> Draw(int64_t size, int step) {
  std::vector<float> numbers(size);
  for (int64_t i = 0; i < size; ++i) {
    numbers[i] = static_cast<float>(i * step % 17 - 8) / 8;
  }
  return numbers;
}

class CudaProductsTest : public ::testing::Test {
 protected:
  // Number n of head h of row r, without a bias.
  double Sum(int r, int h, int n) const {
    double sum = 0;
    for (int k = 0; k < kInputs && n < kOutputs; ++k) {
      sum += double{x_[(r * kHeads + h) * 448 + k]} *
             weights_[(h * kOutputs + n) * kInputs + k];
    }
    return sum;
  }

  const std::vector<float> weights_ = Draw(kHeads * kOutputs * kInputs, 5);
  const std::vector<float> x_ = Draw(16 * kHeads * 448, 7);
  WeightUpload upload_;
  const DeviceMatrix<float> matrix_ = upload_.Matrix<float>(
      at::tensor(weights_).view({kHeads, kOutputs, kInputs}));
  const Array<float> x_there_ = ToDevice(x_);
  Stream stream_;
};

// Of one processor and of many: products in one piece and in several.
TEST_F(CudaProductsTest, AreOfEveryHeadWithBiasAndActivation) {
  const std::vector<float> bias = Draw(kHeads * 128, 3);
  const Array<float> bias_there = ToDevice(bias);
  for (const int processors : {1, 200}) {
    CudaProducts products(stream_, processors, kSumsSize);
    const Array<float> out = Unwritten<float>(16 * kHeads * 128);
    RowProduct<float> product = {matrix_, x_there_.data()};
    product.bias = bias_there.data();
    product.activation = LinearActivation::kRelu;
    product.wide = out.data();
    products.Multiply(kRows, product);
    stream_.Wait();
    const std::vector<float> found = ToHost(out);
    for (int i = 0; i < kRows * kHeads * 128; ++i) {
      const int h = i / 128 % kHeads;
      const double sum =
          Sum(i / 128 / kHeads, h, i % 128) + bias[h * 128 + i % 128];
      EXPECT_EQ(found[i], std::max(sum, 0.0)) << i;
    }
  }
}

TEST_F(CudaProductsTest, InPiecesAddUpToTheWhole) {
  for (const int processors : {1, 200}) {
    CudaProducts products(stream_, processors, kSumsSize);
    const CudaProducts::Pieces pieces =
        products.MultiplyInPieces(kRows, matrix_, x_there_.data());
    EXPECT_EQ(pieces.splits > 1, processors > 1);
    const int64_t size = kRows * kHeads * 128;
    std::vector<float> found(pieces.splits * size);
    stream_.Copy(found.data(), pieces.sums, found.size() * sizeof(float));
    stream_.Wait();
    for (int64_t i = 0; i < size; ++i) {
      double sum = 0;
      for (int s = 0; s < pieces.splits; ++s) sum += found[s * size + i];
      const int row = static_cast<int>(i / 128);
      EXPECT_EQ(sum, Sum(row / kHeads, row % kHeads, i % 128)) << i;
    }
  }
}

// What each product of a step asks for is there.
TEST_F(CudaProductsTest, TheMostSumsHoldEveryBucketsPieces) {
  const RandomCase model = MakeRandomCase(5);
  const auto weights = UploadWeights<Bf16>(model.config, model.weights);
  const std::vector<int> buckets = {1, 16, 64};
  for (const int processors : {1, 20, 132}) {
    const int64_t most = MostSums(weights, buckets, processors);
    for (const int rows : buckets) {
      const CudaLayer<Bf16>& layer = weights.layers[1];
      for (const DeviceMatrix<Bf16>* w :
           {&layer.wq, &layer.wo, &layer.ff_w1, &layer.ff_w2, &layer.keys,
            &layer.absorbed_values, &weights.bins[0].words}) {
        const bool in_pieces =
            w == &layer.wq || w == &layer.wo || w == &layer.ff_w2;
        const int splits = LinearSplits(
            {rows, w->inputs, w->outputs, w->batch},
            in_pieces ? FinishedBy::kNextKernel : FinishedBy::kOwnKernel,
            processors);
        if (splits == 1) continue;
        EXPECT_GE(most, int64_t{splits} * rows * w->batch * w->outputs);
      }
      EXPECT_GE(most, int64_t{rows} * layer.wq.outputs);
    }
  }
}

}  // namespace
}  // namespace txl::cuda
