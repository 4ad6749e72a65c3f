#include "model/train/adam.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace txl {
namespace {

at::Tensor Leaf(const at::Tensor& value) {
  return value.clone().set_requires_grad(true);
}

void SetGradient(const at::Tensor& leaf, const at::Tensor& gradient) {
  leaf.mutable_grad() = gradient.clone();
}

TEST(AdamTest, FollowsThePapersAlgorithm) {
  AdamOptions options;
  options.beta1 = 0.8;
  options.beta2 = 0.95;
  options.epsilon = 1e-3;
  options.clip_norm = 1e9;
  const at::Tensor x = Leaf(at::tensor({1.0, -2.0}, at::kDouble));
  Adam adam({{"x", x}}, options);
  double m = 0, v = 0, expected = 1.0;
  for (int t = 1; t <= 5; ++t) {
    const double g = 0.3 * t;
    SetGradient(x, at::tensor({g, -g}, at::kDouble));
    adam.Step(0.1);
    m = 0.8 * m + 0.2 * g;
    v = 0.95 * v + 0.05 * g * g;
    const double m_hat = m / (1 - std::pow(0.8, t));
    const double v_hat = v / (1 - std::pow(0.95, t));
    expected -= 0.1 * m_hat / (std::sqrt(v_hat) + 1e-3);
    EXPECT_NEAR(x[0].item<double>(), expected, 1e-7) << "step " << t;
  }
}

TEST(AdamTest, ClipsTheNormOfAllGradientsTogether) {
  AdamOptions options;
  options.clip_norm = 1;
  const at::Tensor a = Leaf(at::zeros({1})), b = Leaf(at::zeros({1}));
  Adam adam({{"a", a}, {"b", b}}, options);
  SetGradient(a, at::tensor({3.0f}));
  SetGradient(b, at::tensor({4.0f}));
  EXPECT_NEAR(adam.Step(0.1), 5, 1e-6);
  EXPECT_NEAR(a.grad().item<double>(), 0.6, 1e-6);
  EXPECT_NEAR(b.grad().item<double>(), 0.8, 1e-6);
}

TEST(AdamTest, DecaysMatricesButNotBiases) {
  AdamOptions options;
  options.weight_decay = 0.5;
  const at::Tensor matrix = Leaf(at::ones({2, 2}));
  const at::Tensor bias = Leaf(at::ones({2}));
  const at::Tensor u = Leaf(at::ones({2, 2}));
  Adam adam({{"layer.0.wq", matrix}, {"layer.0.bo", bias}, {"layer.0.u", u}},
            options);
  for (const at::Tensor& leaf : {matrix, bias, u}) {
    SetGradient(leaf, at::zeros_like(leaf));
  }
  adam.Step(0.1);
  EXPECT_NEAR(matrix[0][0].item<double>(), 0.95, 1e-6);
  EXPECT_EQ(bias[0].item<double>(), 1);
  EXPECT_EQ(u[0][0].item<double>(), 1);
}

TEST(AdamTest, AGradientThatIsNotFiniteChangesNothing) {
  const at::Tensor x = Leaf(at::ones({2}));
  Adam adam({{"x", x}}, {});
  SetGradient(x, at::full({2}, std::numeric_limits<float>::infinity()));
  EXPECT_FALSE(std::isfinite(adam.Step(0.1)));
  EXPECT_TRUE(x.equal(at::ones({2})));
}

TEST(AdamTest, RestoredMomentsContinueAsIfNeverStopped) {
  const at::Tensor x = Leaf(at::ones({3})), y = Leaf(at::ones({3}));
  Adam whole({{"x", x}}, {}), second_half({{"x", y}}, {});
  SetGradient(x, at::tensor({0.1f, 0.2f, -0.3f}));
  whole.Step(0.1);
  y.detach().copy_(x.detach());
  const auto from = whole.State(), to = second_half.State();
  ASSERT_EQ(from.size(), to.size());
  for (size_t i = 0; i < from.size(); ++i) to[i].second.copy_(from[i].second);
  for (const auto& [adam, leaf] : {std::pair(&whole, x), {&second_half, y}}) {
    SetGradient(leaf, at::tensor({-0.1f, 0.4f, 0.3f}));
    adam->Step(0.1);
  }
  EXPECT_TRUE(x.equal(y));
}

constexpr LearningRateSchedule kSchedule{
    .peak = 0.8, .final_share = 0.1, .warmup_steps = 4, .total_steps = 104};

TEST(LearningRateTest, RisesLinearlyToThePeak) {
  EXPECT_DOUBLE_EQ(LearningRateAt(kSchedule, 0), 0.2);
  EXPECT_DOUBLE_EQ(LearningRateAt(kSchedule, 1), 0.4);
  EXPECT_DOUBLE_EQ(LearningRateAt(kSchedule, 3), 0.8);
}

TEST(LearningRateTest, FallsAlongHalfACosineToTheFinalShare) {
  EXPECT_DOUBLE_EQ(LearningRateAt(kSchedule, 4), 0.8);
  // Half way the cosine is at its middle: 0.1 + 0.9 / 2 of the peak.
  EXPECT_NEAR(LearningRateAt(kSchedule, 54), 0.8 * 0.55, 1e-12);
  EXPECT_NEAR(LearningRateAt(kSchedule, 104), 0.08, 1e-12);
}

TEST(LearningRateTest, WithoutWarmupStartsAtThePeak) {
  LearningRateSchedule schedule = kSchedule;
  schedule.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 0), 0.8);
}

TEST(LearningRateTest, AWarmupAsLongAsTheRunNeverDividesByZero) {
  LearningRateSchedule schedule = kSchedule;
  schedule.warmup_steps = schedule.total_steps;
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 103), 0.8);
  EXPECT_DOUBLE_EQ(LearningRateAt(schedule, 104), 0.8);
}

}  // namespace

}  // namespace txl
