// Training on and dynamic evaluation of golden checkpoints, compared with the
// PyTorch code that made them; golden/make_golden.py says how.

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/train/dynamic_evaluation.h"
#include "model/train/trainer.h"
#include "tests/model/golden_paths.h"
#include "tests/model/torch/golden_case.h"

namespace txl {
namespace {

constexpr double kTolerance = 1e-4;  // nats

const nlohmann::json& Golden() {
  static const auto* const golden = new nlohmann::json(nlohmann::json::parse(
      std::ifstream(TestData() + "/model/train/golden/losses.json")));
  return *golden;
}

StreamShape GoldenShape() {
  return {Golden().at("streams"), Golden().at("segment")};
}

TrainOptions GoldenOptions(const GoldenCase& golden) {
  TrainOptions options;
  options.start = TrainingStart{golden.weights, "golden"};
  options.memory = golden.config.mem_len;
  options.shape = options.evaluation_shape = GoldenShape();
  options.schedule.peak = Golden().at("peak");
  options.schedule.warmup_steps = Golden().at("warmup");
  options.schedule.final_share = Golden().at("final_share");
  options.adam.beta2 = Golden().at("beta2");
  options.adam.clip_norm = Golden().at("clip");
  options.dropout = 0;
  options.log_every = 1;
  return options;
}

class GoldenLossesTest : public testing::TestWithParam<std::string> {
 protected:
  const nlohmann::json& expected() const {
    return Golden().at("cases").at(GetParam());
  }
  std::vector<int64_t> ids() const { return expected().at("ids"); }

  // Nats per token of what the golden script evaluates.
  double Dynamic(const std::string& kind) const {
    GoldenCase golden = LoadGoldenCase(GetParam(), at::kFloat);
    const nlohmann::json& settings = Golden().at("dynamic").at(kind);
    DynamicOptions options;
    options.steps = kind == "rms" ? DynamicSteps::kRms : DynamicSteps::kSgd;
    options.learning_rate = settings.at("lr");
    options.decay = settings.value("decay", options.decay);
    options.epsilon = settings.value("epsilon", options.epsilon);
    DynamicEvaluation evaluation(golden.config, golden.weights, options);
    const std::vector<int64_t> all = ids();
    const absl::Span<const int64_t> text(all);
    const size_t half = all.size() / 2;
    if (kind == "rms") evaluation.Gather(text.first(half), Cut());
    return evaluation.Run(text.subspan(half, 500), Cut()).nats;
  }

  static EvaluationOptions Cut() {
    EvaluationOptions options;
    options.shape = GoldenShape();
    options.cut = StreamCut::kOriginal;
    return options;
  }
};

TEST_P(GoldenLossesTest, TrainingOnFollowsTheOriginalCodesLossForFiftySteps) {
  const GoldenCase golden = LoadGoldenCase(GetParam(), at::kFloat);
  TrainOptions options = GoldenOptions(golden);
  const std::vector<double> losses = expected().at("losses");
  options.schedule.total_steps = static_cast<int64_t>(losses.size());
  std::vector<double> measured;
  TrainCallbacks callbacks;
  callbacks.progress = [&](const TrainProgress& progress) {
    measured.push_back(*progress.loss);
  };
  const auto result =
      Train(golden.config, SplitIds(ids(), 0), options, callbacks);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(measured.size(), losses.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(measured[i], losses[i], kTolerance) << "step " << i;
  }
}

TEST_P(GoldenLossesTest, DynamicEvaluationFollowsTheAuthorsPlainSteps) {
  EXPECT_NEAR(Dynamic("sgd"), expected().at("sgd"), kTolerance);
}

TEST_P(GoldenLossesTest, DynamicEvaluationFollowsTheAuthorsScaledSteps) {
  EXPECT_NEAR(Dynamic("rms"), expected().at("rms"), kTolerance);
}

std::vector<std::string> GoldenLossCases() {
  std::vector<std::string> names;
  for (const auto& [name, expected] : Golden().at("cases").items()) {
    names.push_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenLossesTest,
                         testing::ValuesIn(GoldenLossCases()),
                         [](const auto& info) {
                           return GoldenParamName(info.param);
                         });

}  // namespace
}  // namespace txl
