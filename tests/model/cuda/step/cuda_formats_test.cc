// Weights and stored rows of 16 bits: the same promises, and numbers that are
// as close to float32's as the formats let them be.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/base/number_format.h"
#include "tests/model/cuda/device_data.h"
#include "tests/model/cuda/step/cuda_driver.h"

namespace txl {
namespace {

struct Formats {
  NumberFormat weights;
  NumberFormat memory;
};

// The largest relative error of rounding to the coarser of both.
double UnitRoundoff(const Formats& formats) {
  double coarsest = 0;
  for (const NumberFormat format : {formats.weights, formats.memory}) {
    const double own = format == NumberFormat::kBF16  ? 0x1p-8
                       : format == NumberFormat::kF16 ? 0x1p-11
                                                      : 0x1p-24;
    coarsest = std::max(coarsest, own / 2);
  }
  return coarsest;
}

class CudaFormatsTest : public testing::TestWithParam<Formats> {
 protected:
  static CudaStepOptions Options(int64_t slots) {
    CudaStepOptions options;
    options.slots = slots;
    options.spare_rows = 48;
    options.max_rows = 48;
    options.weights = GetParam().weights;
    options.memory = GetParam().memory;
    return options;
  }
};

// A row's way through a layer has some ten roundings, of weights and of
// activations; log-probabilities are of order 1.
TEST_P(CudaFormatsTest, NumbersAreAsCloseToFloat32AsRoundingLets) {
  const double unit = UnitRoundoff(GetParam());
  // Few rows at a time, and so many that products are cut otherwise.
  for (const int64_t cut : {16, 48}) {
    for (const uint32_t seed : {3, 5}) {
      const RandomCase model = MakeRandomCase(seed);
      auto step = MakeCudaStep(model, Options(1));
      auto oracle = MakeOracle(model, 1);
      const std::vector<float> found =
          FeedRows(*step, 0, model.tokens, 0, 48, cut);
      const std::vector<float> expected =
          FeedRows(*oracle, 0, model.tokens, 0, 48, 16);
      double mean = 0;
      for (size_t i = 0; i < found.size(); ++i) {
        mean += std::abs(double{found[i]} - expected[i]) /
                static_cast<double>(found.size());
      }
      EXPECT_LE(mean, 4 * unit) << model.Describe();
      EXPECT_GT(mean, 0);
      EXPECT_LE(WorstDifference(found, expected), 40 * unit)
          << model.Describe();
    }
  }
}

TEST_P(CudaFormatsTest, MovedStatesGoOnWithTheSameBitsAndSoDoOtherThreads) {
  const RandomCase model = MakeRandomCase(3);
  std::vector<float> first;
  for (const uint64_t order : {1, 2}) {
    cuda::ShuffleThreads(order);
    auto step = MakeCudaStep(model, Options(2));
    const int64_t cut = model.config.mem_len + 5;
    FeedRows(*step, 0, model.tokens, 0, cut, 16);
    ASSERT_TRUE(step->Import(1, step->Export(0, cut)).ok());
    const auto rest = [&](int32_t slot) {
      return FeedRows(*step, slot, model.tokens, cut, cut + 5, 4);
    };
    const std::vector<float> expected = rest(0);
    EXPECT_EQ(rest(1), expected);
    if (order == 1) first = expected;
    EXPECT_EQ(expected, first);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pairs, CudaFormatsTest,
    testing::Values(Formats{NumberFormat::kBF16, NumberFormat::kBF16},
                    Formats{NumberFormat::kF16, NumberFormat::kF16},
                    Formats{NumberFormat::kBF16, NumberFormat::kF16},
                    Formats{NumberFormat::kF16, NumberFormat::kF32},
                    Formats{NumberFormat::kF32, NumberFormat::kBF16}),
    [](const testing::TestParamInfo<Formats>& info) {
      return absl::StrCat("Weights_", FormatName(info.param.weights), "_Rows_",
                          FormatName(info.param.memory));
    });

}  // namespace
}  // namespace txl
