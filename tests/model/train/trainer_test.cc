// A training run on a text whose structure needs memory of a few characters.

#include "model/train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include "model/train/evaluation.h"

namespace txl {
namespace {

using testing::HasSubstr;

std::string SyntheticText() {
  std::string text;
  for (int i = 0; i < 160; ++i) text += i % 3 == 0 ? "abcde " : "edcba ";
  return text;
}

double UnigramEntropy(const std::vector<int64_t>& ids) {
  std::map<int64_t, double> counts;
  for (int64_t id : ids) ++counts[id];
  double entropy = 0;
  for (const auto& [id, count] : counts) {
    const double p = count / static_cast<double>(ids.size());
    entropy -= p * std::log(p);
  }
  return entropy;
}

Corpus SyntheticCorpus() {
  return *MakeCorpus(SyntheticText(), CorpusVocabulary::kCharacters, 0.2);
}

ModelConfig TinyConfig(const Corpus& corpus) {
  ModelConfig config;
  config.vocab_size = corpus.vocab_size();
  config.n_layer = 2;
  config.n_head = 2;
  config.d_head = 8;
  config.d_model = config.d_embed = 16;
  config.d_inner = 32;
  config.norm = NormPlacement::kPre;
  config.final_norm = true;
  config.tie_weight = true;
  config.tie_projs = {false};
  config.mem_len = 15;
  config.window = 16;
  return config;
}

TrainOptions TinyOptions() {
  TrainOptions options;
  options.shape = {4, 8};
  options.evaluation_shape = {2, 8};
  options.memory = 8;
  options.schedule.peak = 1e-2;
  options.schedule.warmup_steps = 5;
  options.schedule.total_steps = 60;
  options.dropout = 0.05;
  options.attention_dropout = 0.05;
  options.evaluate_every = 20;
  options.checkpoint_every = 1000;
  return options;
}

std::string FreshFolder(const std::string& name) {
  const std::string folder = testing::TempDir() + "/trainer_test_" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

void ExpectSameWeights(const Weights& a, const Weights& b) {
  const auto left = a.Named(), right = b.Named();
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) {
    EXPECT_TRUE(left[i].second.equal(right[i].second)) << left[i].first;
  }
}

TEST(TrainerTest, LossFallsBelowTheEntropyOfTheCharacters) {
  const Corpus corpus = SyntheticCorpus();
  TrainCallbacks callbacks;
  double last_loss = 0;
  callbacks.progress = [&](const TrainProgress& p) {
    if (p.loss) last_loss = *p.loss;
  };
  const auto result =
      Train(TinyConfig(corpus), corpus, TinyOptions(), callbacks);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LT(last_loss, 0.6 * UnigramEntropy(corpus.train));
  EXPECT_LT(result->held_out, 0.6 * UnigramEntropy(corpus.held_out));
  EXPECT_EQ(result->steps, 60);
}

TEST(TrainerTest, BestIsCalledWithEveryNewLowestHeldOutLoss) {
  const Corpus corpus = SyntheticCorpus();
  TrainCallbacks callbacks;
  std::vector<double> handed, measured;
  callbacks.best = [&](const Weights&, double held_out) {
    handed.push_back(held_out);
    return absl::OkStatus();
  };
  callbacks.progress = [&](const TrainProgress& p) {
    if (p.held_out) measured.push_back(*p.held_out);
  };
  const auto result =
      Train(TinyConfig(corpus), corpus, TinyOptions(), callbacks);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(measured.size(), 3u);
  std::vector<double> lowest;
  for (double value : measured) {
    if (lowest.empty() || value < lowest.back()) lowest.push_back(value);
  }
  EXPECT_EQ(handed, lowest);
  EXPECT_EQ(result->held_out, lowest.back());
}

// Stops at the report of `stop_at`, as a signal would.
absl::StatusOr<TrainResult> TrainUntil(const Corpus& corpus,
                                       TrainOptions options, int64_t stop_at) {
  std::atomic<bool> stop = false;
  TrainCallbacks callbacks;
  callbacks.stop = &stop;
  callbacks.progress = [&](const TrainProgress& p) {
    if (p.step == stop_at) stop = true;
  };
  return Train(TinyConfig(corpus), corpus, options, callbacks);
}

TEST(TrainerTest, AResumedRunEndsWithTheSameWeightsAsOneWithoutAStop) {
  const Corpus corpus = SyntheticCorpus();
  TrainOptions options = TinyOptions();
  const auto whole = Train(TinyConfig(corpus), corpus, options, {});
  ASSERT_TRUE(whole.ok()) << whole.status();

  options.checkpoint_dir = FreshFolder("resume");
  const auto part = TrainUntil(corpus, options, 20);
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_TRUE(part->stopped);
  EXPECT_EQ(part->steps, 20);
  options.resume = true;
  const auto rest = Train(TinyConfig(corpus), corpus, options, {});
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_FALSE(rest->stopped);
  EXPECT_EQ(rest->held_out, whole->held_out);
  EXPECT_EQ(rest->best_step, whole->best_step);
  ExpectSameWeights(rest->weights, whole->weights);
}

TEST(TrainerTest, ACheckpointOfAnotherRunIsRefused) {
  const Corpus corpus = SyntheticCorpus();
  TrainOptions options = TinyOptions();
  options.checkpoint_dir = FreshFolder("other");
  ASSERT_TRUE(TrainUntil(corpus, options, 20).ok());
  options.resume = true;
  options.schedule.peak = 2e-2;
  const auto resumed = Train(TinyConfig(corpus), corpus, options, {});
  EXPECT_EQ(resumed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(resumed.status().message()),
              testing::EndsWith("other settings: --lr 0.01, now 0.02"));
}

TEST(TrainerTest, AResumedRunMayBeGivenMoreSteps) {
  const Corpus corpus = SyntheticCorpus();
  TrainOptions options = TinyOptions();
  options.checkpoint_dir = FreshFolder("more");
  ASSERT_TRUE(TrainUntil(corpus, options, 20).ok());
  options.resume = true;
  options.schedule.total_steps += 10;
  const auto resumed = Train(TinyConfig(corpus), corpus, options, {});
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->steps, options.schedule.total_steps);
}

TEST(TrainerTest, ResumingWithoutACheckpointIsNotFound) {
  const Corpus corpus = SyntheticCorpus();
  TrainOptions options = TinyOptions();
  options.checkpoint_dir = FreshFolder("none");
  options.resume = true;
  EXPECT_EQ(Train(TinyConfig(corpus), corpus, options, {}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(TrainerTest, TheSeedDecidesTheRun) {
  const Corpus corpus = SyntheticCorpus();
  TrainOptions options = TinyOptions();
  options.schedule.total_steps = 10;
  const auto a = Train(TinyConfig(corpus), corpus, options, {});
  const auto b = Train(TinyConfig(corpus), corpus, options, {});
  options.seed = 2;
  const auto c = Train(TinyConfig(corpus), corpus, options, {});
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  ExpectSameWeights(a->weights, b->weights);
  EXPECT_FALSE(a->weights.layers[0].wq.equal(c->weights.layers[0].wq));
}

TEST(TrainerTest, ProductsInBfloat16LearnAsWell) {
  const Corpus corpus = SyntheticCorpus();
  TrainOptions options = TinyOptions();
  options.bfloat16 = true;
  const auto result = Train(TinyConfig(corpus), corpus, options, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_LT(result->held_out, 0.6 * UnigramEntropy(corpus.held_out));
  EXPECT_EQ(result->weights.layers[0].wq.scalar_type(), at::kFloat);
}

TEST(TrainerTest, ATiedModelKeepsOneEmbedding) {
  const Corpus corpus = SyntheticCorpus();
  TrainOptions options = TinyOptions();
  options.schedule.total_steps = 3;
  const auto result = Train(TinyConfig(corpus), corpus, options, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(
      result->weights.head[0].w.is_same(result->weights.embedding[0].w));
}

TEST(TrainerTest, OptionsThatCannotWorkAreRefused) {
  const Corpus corpus = SyntheticCorpus();
  const ModelConfig config = TinyConfig(corpus);
  const auto refused = [&](auto change) {
    TrainOptions options = TinyOptions();
    change(options);
    return Train(config, corpus, options, {}).status().code() ==
           absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](TrainOptions& o) { o.dropout = 1; }));
  EXPECT_TRUE(refused([](TrainOptions& o) { o.schedule.peak = 0; }));
  EXPECT_TRUE(refused([](TrainOptions& o) { o.schedule.total_steps = 0; }));
  EXPECT_TRUE(refused([](TrainOptions& o) { o.memory = -1; }));
  EXPECT_TRUE(refused([](TrainOptions& o) { o.evaluate_every = 0; }));
  EXPECT_TRUE(refused([](TrainOptions& o) { o.adam.clip_norm = 0; }));
  EXPECT_TRUE(refused([](TrainOptions& o) { o.shape.streams = 500; }));
}

TrainOptions OptionsFrom(const Weights& start) {
  TrainOptions options = TinyOptions();
  Weights copy = start;
  for (LayerWeights& layer : copy.layers) layer.wq = layer.wq.detach().clone();
  options.start = TrainingStart{copy, "start"};
  return options;
}

Weights StartWeights(const Corpus& corpus) {
  return RandomWeights(TinyConfig(corpus), 0.1, 5, {});
}

TEST(TrainerTest, TrainingOnBeginsWithTheStartsOwnLossAndWeights) {
  const Corpus corpus = SyntheticCorpus();
  const ModelConfig config = TinyConfig(corpus);
  TrainOptions options = OptionsFrom(StartWeights(corpus));
  const double of_start =
      Evaluate(ReferenceNetwork(config, StartWeights(corpus)), corpus.held_out,
               {options.evaluation_shape, StreamCut::kWhole, nullptr, nullptr})
          .nats;
  TrainCallbacks callbacks;
  std::vector<TrainProgress> reports;
  callbacks.progress = [&](const TrainProgress& p) { reports.push_back(p); };
  bool first = true;
  callbacks.best = [&](const Weights& weights, double) {
    if (std::exchange(first, false)) {
      ExpectSameWeights(weights, StartWeights(corpus));
    }
    return absl::OkStatus();
  };
  const auto result = Train(config, corpus, options, callbacks);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(reports[0].step, 0);
  EXPECT_FALSE(reports[0].loss.has_value());
  EXPECT_NEAR(*reports[0].held_out, of_start, 1e-6);
  EXPECT_LT(result->held_out, of_start);
}

TEST(TrainerTest, AStartThatNoStepImprovesStaysTheBest) {
  const Corpus corpus = SyntheticCorpus();
  const auto trained = Train(TinyConfig(corpus), corpus, TinyOptions(), {});
  ASSERT_TRUE(trained.ok()) << trained.status();
  TrainOptions options = OptionsFrom(trained->weights);
  options.schedule.peak = 10;  // destroys it
  options.schedule.total_steps = 3;
  const auto result = Train(TinyConfig(corpus), corpus, options, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->best_step, 0);
  EXPECT_GT(result->held_out, 0);
}

// Counts how often weights without a held-out loss are handed out.
std::function<absl::Status(const Weights&, double)> CountHandouts(int& handed) {
  return [&handed](const Weights&, double held_out) {
    ++handed;
    EXPECT_EQ(held_out, 0);
    return absl::OkStatus();
  };
}

TEST(TrainerTest, AStoppedRunThatMeasuredNothingHandsOutItsWeights) {
  const Corpus corpus = SyntheticCorpus();
  TrainOptions options = TinyOptions();
  options.log_every = 1;
  std::atomic<bool> stop = false;
  TrainCallbacks callbacks;
  callbacks.stop = &stop;
  callbacks.progress = [&](const TrainProgress&) { stop = true; };
  int handed = 0;
  callbacks.best = CountHandouts(handed);
  const auto result = Train(TinyConfig(corpus), corpus, options, callbacks);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->steps, 1);
  EXPECT_EQ(handed, 1);
}

TEST(TrainerTest, AStopDoesNotWaitForTheHeldOutLoss) {
  const Corpus corpus = SyntheticCorpus();
  const TrainOptions options = OptionsFrom(StartWeights(corpus));
  const std::atomic<bool> stop = true;
  TrainCallbacks callbacks;
  callbacks.stop = &stop;
  callbacks.progress = [](const TrainProgress&) {
    ADD_FAILURE() << "a loss that was measured in part";
  };
  int handed = 0;
  callbacks.best = CountHandouts(handed);
  const auto result = Train(TinyConfig(corpus), corpus, options, callbacks);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->stopped);
  EXPECT_EQ(handed, 1);
}

TEST(TrainerTest, AResumedRunHasToBeOfTheSameStart) {
  const Corpus corpus = SyntheticCorpus();
  TrainOptions options = OptionsFrom(StartWeights(corpus));
  options.checkpoint_dir = FreshFolder("start");
  options.schedule.total_steps = 2;
  ASSERT_TRUE(Train(TinyConfig(corpus), corpus, options, {}).ok());
  options.resume = true;
  options.schedule.total_steps = 3;
  EXPECT_TRUE(Train(TinyConfig(corpus), corpus, options, {}).ok());
  options.start->name = "another";
  EXPECT_THAT(Train(TinyConfig(corpus), corpus, options, {}).status().message(),
              HasSubstr("--from start, now another"));
  options.start.reset();
  EXPECT_THAT(Train(TinyConfig(corpus), corpus, options, {}).status().message(),
              HasSubstr("--from start, now nothing"));
}

TEST(TrainerTest, MemoryIsOfFourCopiesOfTheWeightsAndOfEveryScore) {
  const Corpus corpus = SyntheticCorpus();
  ModelConfig config = TinyConfig(corpus);
  TrainOptions options = TinyOptions();
  const int64_t weights =
      RandomWeights(config, 1, 1, {}).Bytes();  // float32, none twice
  const int64_t bytes = TrainingBytes(config, options);
  EXPECT_GT(bytes, 4 * weights);
  // Two more memory rows: 2 layers, 4 * 8 rows, 2 heads, score and probability;
  // and keys and values of 16 numbers in 4 streams.
  options.memory += 2;
  EXPECT_EQ(TrainingBytes(config, options) - bytes,
            4 * 2 * (2 * 32 * 2 * 2 + 2 * 4 * 2 * 16));
  options.memory = int64_t{1} << 60;
  EXPECT_GT(TrainingBytes(config, options), int64_t{1} << 60);
}

TEST(TrainerTest, IdsOutsideTheVocabularyAreRefused) {
  const Corpus corpus = SyntheticCorpus();
  ModelConfig config = TinyConfig(corpus);
  --config.vocab_size;
  const auto result = Train(config, corpus, TinyOptions(), {});
  EXPECT_THAT(result.status().message(), HasSubstr("outside the vocabulary"));
}

}  // namespace
}  // namespace txl
