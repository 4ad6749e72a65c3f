#include "server/engine/runner_options.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace txl {
namespace {

// What a preset makes of the usual settings; `given` ones have values already.
std::string Formats(const std::string& quality,
                    const std::set<std::string>& given = {},
                    StepRunnerOptions options = {}) {
  ApplyQuality(
      quality,
      [&](absl::string_view name) { return given.contains(std::string(name)); },
      options);
  return FormatsText(options);
}

TEST(Quality, EachPresetSetsWhatItNames) {
  EXPECT_EQ(Formats("exact"),
            "weights f32, products float, memory f32, derived f32");
  EXPECT_EQ(Formats("balanced"),
            "weights int8, products float, memory f32, derived f16");
  EXPECT_EQ(Formats("fast"),
            "weights int8, products int8, memory int8, derived int8");
}

TEST(Quality, GivenSettingsWinOneByOne) {
  StepRunnerOptions options = {.memory = "bf16"};
  EXPECT_EQ(Formats("fast", {"memory"}, options),
            "weights int8, products int8, memory bf16, derived int8");
  EXPECT_EQ(Formats("fast", {"products"}),
            "weights int8, products float, memory int8, derived int8");
  EXPECT_EQ(Formats("balanced", {"derived"}),
            "weights int8, products float, memory f32, derived f32");
  options = {};
  options.weights = "f16";
  EXPECT_EQ(Formats("exact", {"weights"}, options),
            "weights f16, products float, memory f32, derived f32");
}

TEST(Quality, IntegerProductsNeedIntegerWeights) {
  StepRunnerOptions options = {.weights = "f16"};
  EXPECT_EQ(Formats("fast", {"weights"}, options),
            "weights f16, products float, memory int8, derived int8");
}

TEST(Quality, WeightsOf4BitsAreMultipliedAsIntegersToo) {
  StepRunnerOptions options = {.weights = "int4"};
  EXPECT_EQ(Formats("fast", {"weights"}, options),
            "weights int4, products int8, memory int8, derived int8");
}

TEST(Quality, NamesBeginWithTheDefault) {
  EXPECT_EQ(QualityNames().front(), kExactQuality);
  EXPECT_EQ(QualityNames().size(), 3u);
}

}  // namespace

}  // namespace txl
