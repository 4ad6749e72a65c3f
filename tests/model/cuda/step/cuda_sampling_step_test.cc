// The step that samples on the device gives the tokens of the plain step with
// the CPU's sampler, on models of many shapes; and what callers may rely on.

#include "model/cuda/step/cuda_sampling_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/base/number_format.h"
#include "tests/model/cuda/device_data.h"
#include "tests/model/cuda/step/sampling_driver.h"

namespace txl {
namespace {

constexpr int32_t kSessions = 4;
constexpr int64_t kRows = 20;

CudaStepOptions TwoLaneOptions() {
  CudaStepOptions options;
  options.slots = kSessions;
  options.spare_rows = 32;
  options.max_rows = kRows;
  return options;
}

struct Shape {
  uint32_t seed;
  std::vector<int64_t> cutoffs;
  int64_t div_val;
  NumberFormat weights = NumberFormat::kF32;
  NumberFormat memory = NumberFormat::kF32;
};

RandomCase CaseOfShape(const Shape& shape) {
  ModelConfig config = RandomConfig(shape.seed);
  config.vocab_size = 90;
  config.cutoffs = shape.cutoffs;
  config.div_val = shape.div_val;
  config.tie_projs.assign(config.n_bins(), false);
  return CaseOf(config, shape.seed, 80);
}

class SamplingShapeTest : public testing::TestWithParam<Shape> {
 protected:
  static CudaStepOptions ShapeOptions() {
    CudaStepOptions options = TwoLaneOptions();
    options.weights = GetParam().weights;
    options.memory = GetParam().memory;
    return options;
  }
  // Both evaluate the same rows, with products that may be cut otherwise.
  static constexpr double kTolerance = 2e-5;
};

TEST_P(SamplingShapeTest, HasTheTokensOfThePlainStepAndTheSampler) {
  const RandomCase model = CaseOfShape(GetParam());
  for (const uint32_t seed : {1, 2}) {
    const Script script = RandomScript(model, kSessions, 12, kRows, seed);
    auto step = MakeSamplingStep(model, ShapeOptions());
    auto oracle = MakeCudaStep(model, ShapeOptions());
    const std::vector<SampledRows> found = RunScript(*step, script, 1);
    const auto expected = RunScriptOnHost(*oracle, script);
    for (size_t i = 0; i < script.size(); ++i) {
      ExpectSameRows(found[i].rows, expected[i], kTolerance,
                     absl::StrCat("step ", i, " of ", model.Describe()));
    }
  }
}

TEST_P(SamplingShapeTest, TwoStepsInFlightGiveTheBitsOfOneByOne) {
  const RandomCase model = CaseOfShape(GetParam());
  const Script script = RandomScript(model, kSessions, 12, kRows, 3);
  std::vector<SampledRows> first;
  for (const uint64_t order : {1, 2, 3}) {
    cuda::ShuffleThreads(order);
    auto step = MakeSamplingStep(model, ShapeOptions());
    const std::vector<SampledRows> rows =
        RunScript(*step, script, order == 1 ? 1 : SamplingStep::kDepth);
    if (order == 1) first = rows;
    EXPECT_TRUE(SameSampledRows(rows, first));
  }
}

// Only a device does run two at a time.
TEST_P(SamplingShapeTest, KernelsThatOverlapGiveTheBitsOfThoseThatDoNot) {
  const RandomCase model = CaseOfShape(GetParam());
  const Script script = RandomScript(model, kSessions, 12, kRows, 4);
  CudaStepOptions options = ShapeOptions();
  options.overlapped_rows = 0;
  auto one_by_one = MakeSamplingStep(model, options);
  options.overlapped_rows = kMostCudaRows;
  auto overlapping = MakeSamplingStep(model, options);
  EXPECT_TRUE(
      SameSampledRows(RunScript(*overlapping, script, SamplingStep::kDepth),
                      RunScript(*one_by_one, script, 1)));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, SamplingShapeTest,
    testing::Values(
        Shape{0, {}, 1}, Shape{1, {30}, 1}, Shape{2, {20, 50}, 2},
        Shape{3, {10, 30, 60}, 3},
        Shape{4, {}, 1, NumberFormat::kBF16, NumberFormat::kBF16},
        Shape{5, {10, 30, 60}, 2, NumberFormat::kBF16, NumberFormat::kBF16},
        Shape{6, {20, 50}, 1, NumberFormat::kF16, NumberFormat::kF32}),
    [](const testing::TestParamInfo<Shape>& info) {
      return absl::StrCat("Clusters_", info.param.cutoffs.size(), "_Seed_",
                          info.param.seed, "_Weights_",
                          FormatName(info.param.weights));
    });

}  // namespace
}  // namespace txl
