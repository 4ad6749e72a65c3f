#include "model/reference/dropout.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <cmath>

namespace txl {
namespace {

TEST(DropoutStreamTest, ZeroesTheGivenShareAndKeepsTheMean) {
  DropoutStream stream(7, 3);
  const at::Tensor y = stream.Apply(at::ones({1000, 1000}), 0.3);
  // Standard deviation of the share: sqrt(0.21 / 1e6) = 0.00046.
  EXPECT_NEAR(y.eq(0).to(at::kDouble).mean().item<double>(), 0.3, 0.0025);
  EXPECT_NEAR(y.mean().item<double>(), 1.0, 0.0036);
  EXPECT_NEAR(y.max().item<double>(), 1 / 0.7, 1e-6);
}

TEST(DropoutStreamTest, MasksOfNeighboursAndCallsAreUnrelated) {
  DropoutStream stream(7, 3);
  const at::Tensor x = at::ones({200000});
  const at::Tensor a = stream.Apply(x, 0.5).ne(0).to(at::kDouble);
  const at::Tensor b = stream.Apply(x, 0.5).ne(0).to(at::kDouble);
  // Both kept: 1/4, standard deviation 0.001.
  EXPECT_NEAR((a * b).mean().item<double>(), 0.25, 0.006);
  const at::Tensor neighbours = a.narrow(0, 0, 199999) * a.narrow(0, 1, 199999);
  EXPECT_NEAR(neighbours.mean().item<double>(), 0.25, 0.006);
}

TEST(DropoutStreamTest, IsAFunctionOfSeedStepAndCall) {
  const at::Tensor x = at::ones({5000});
  EXPECT_TRUE(DropoutStream(1, 2).Apply(x, 0.5).equal(
      DropoutStream(1, 2).Apply(x, 0.5)));
  EXPECT_FALSE(DropoutStream(1, 2).Apply(x, 0.5).equal(
      DropoutStream(1, 3).Apply(x, 0.5)));
  EXPECT_FALSE(DropoutStream(1, 2).Apply(x, 0.5).equal(
      DropoutStream(2, 2).Apply(x, 0.5)));
}

TEST(DropoutStreamTest, DoesNotDependOnTheNumberOfThreads) {
  const at::Tensor x = at::ones({1 << 17});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor alone = DropoutStream(1, 2).Apply(x, 0.5);
  at::set_num_threads(2);
  const at::Tensor shared = DropoutStream(1, 2).Apply(x, 0.5);
  at::set_num_threads(threads);
  EXPECT_TRUE(alone.equal(shared));
}

TEST(DropoutStreamTest, GradientIsTheMask) {
  at::Tensor x = at::rand({50}).set_requires_grad(true);
  const at::Tensor y = DropoutStream(4, 4).Apply(x, 0.4);
  y.sum().backward();
  EXPECT_TRUE(at::allclose(x.grad() * x.detach(), y.detach()));
}

TEST(DropoutStreamTest, ProbabilityZeroIsTheIdentity) {
  const at::Tensor x = at::rand({10});
  EXPECT_TRUE(DropoutStream(1, 1).Apply(x, 0).is_same(x));
}

}  // namespace
}  // namespace txl
