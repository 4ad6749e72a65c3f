// Tokens guessed ahead on the shipped model, its text and its stop rules: 64
// mixed streams, together, give to the bit what they give without guesses.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/checkpoint/model_directory.h"
#include "model/text/ngram_table.h"
#include "server/engine/load_step_runner.h"
#include "server/scheduler/scheduler.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/recording_sink.h"
#include "tests/model/golden_paths.h"
#include "tests/model/sampling/some_kinds.h"
#include "tests/server/engine/timed_runner.h"
#include "tests/server/metrics/conservation.h"
#include "tests/server/mixed_sampling.h"

namespace txl {
namespace {

constexpr int kStreams = 64;

// All that a client is told of a token, and of the turn's end.
using Told = std::tuple<int32_t, std::string, float, std::vector<int32_t>,
                        std::vector<float>>;
struct Stream {
  std::vector<Told> tokens;
  FinishReason reason = FinishReason::kMaxTokens;
  std::string rest, stop_text;
  bool operator==(const Stream&) const = default;
};

Stream StreamOf(const RecordingSink& sink) {
  Stream stream;
  EXPECT_TRUE(sink.failed().ok()) << sink.failed();
  for (const TokenEvent& event : sink.tokens()) {
    std::vector<int32_t> ids;
    std::vector<float> logprobs;
    for (const TokenLogprob& top : event.top_logprobs) {
      ids.push_back(top.token_id);
      logprobs.push_back(top.logprob);
    }
    stream.tokens.emplace_back(event.token_id, event.text, event.logprob, ids,
                               logprobs);
  }
  if (!sink.finished().has_value()) return stream;
  stream.reason = sink.finished()->reason;
  stream.rest = sink.finished()->text;
  stream.stop_text = sink.finished()->matched_stop_text;
  return stream;
}

void Ask(int i, const Vocabulary& vocabulary, Turn& turn) {
  const std::vector<std::string> prompts = {"ROMEO:\n", "First Citizen:\nWe ",
                                            "\n", "KING RICHARD III:\nI am"};
  turn.input = *vocabulary.Encode(prompts[i % prompts.size()]);
  turn.sampling = SamplingOf(i);
  turn.top_logprobs = i % 4;
  turn.stop.max_tokens = 20 + i;
  if (i % 3 == 1) turn.stop.stop_texts = {"\n\n", "the "};
  if (i % 5 == 2) turn.stop.stop_token_ids = {vocabulary.Encode("!")->front()};
  if (i % 7 == 3) turn.sampling.min_tokens = 12;
}

struct AllTold {
  std::vector<Stream> streams;
  Snapshot end;
};

// A guess costs nothing then, so that it is always worth its row.
constexpr double kStepSeconds = 1e-3;

// Without a table nothing is guessed.
AllTold RunAll(ModelDirectory& model, const StepRunnerOptions& engine,
               std::shared_ptr<const NgramTable> ngrams) {
  FakeClock clock;
  Metrics metrics;
  SessionStoreOptions sessions;
  sessions.vocabulary = model.vocabulary.get();
  SessionStore store(sessions, &clock);
  auto loaded = LoadStepRunner(model, engine);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  TimedRunner runner(*std::move(loaded), kStepSeconds);
  SchedulerOptions options;
  if (ngrams == nullptr) options.speculate_tokens = 0;
  options.ngrams = std::move(ngrams);
  Scheduler scheduler(options, &runner, &store, &metrics, &clock, false);
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (int i = 0; i < kStreams; ++i) {
    Turn turn;
    Ask(i, *model.vocabulary, turn);
    turn.lease = *store.AcquireTemporary();
    turn.sink = sinks.emplace_back(std::make_shared<RecordingSink>());
    turn.cancel = std::make_shared<CancelToken>();
    EXPECT_TRUE(scheduler.Submit(std::move(turn)).ok());
    // Few are alone, then there is company.
    for (int step = 0; step < (i < 4 ? 12 : 1); ++step) {
      scheduler.RunOnce(absl::ZeroDuration());
    }
  }
  while (scheduler.RunOnce(absl::ZeroDuration())) {
  }
  AllTold run;
  for (const auto& sink : sinks) run.streams.push_back(StreamOf(*sink));
  run.end = metrics.Get();
  EXPECT_EQ(BrokenLaws(run.end), std::vector<std::string>());
  return run;
}

class NativeSpeculation : public ::testing::TestWithParam<StepRunnerOptions> {};

TEST_P(NativeSpeculation, ChangesNoBitOfWhatAnyStreamIsTold) {
  auto model = OpenModelDirectory(TestData() + "/../models/shakespeare");
  ASSERT_TRUE(model.ok()) << model.status();
  model->kinds = SomeTable(model->config.vocab_size);
  const AllTold without = RunAll(*model, GetParam(), nullptr);
  EXPECT_EQ(without.end.tokens_guessed, 0);
  std::vector<int32_t> said;
  for (int i = 0; i < 2 * kStreams; ++i) {
    for (const Told& token : without.streams[i % kStreams].tokens) {
      said.push_back(std::get<0>(token));
    }
  }
  const auto ngrams = std::make_shared<const NgramTable>(
      BuildNgrams(said, 0, {.order = 6, .entries = 100'000}));
  const AllTold with = RunAll(*model, GetParam(), ngrams);
  for (int i = 0; i < kStreams; ++i) {
    EXPECT_EQ(with.streams[i], without.streams[i]) << "stream " << i;
  }
  EXPECT_GT(with.end.guesses_accepted, 0);
  EXPECT_GT(with.end.tokens_guessed, with.end.guesses_accepted);
  EXPECT_EQ(with.end.tokens_delivered, without.end.tokens_delivered);
}

StepRunnerOptions Engine(const std::string& form, const std::string& weights,
                         const std::string& rows) {
  StepRunnerOptions options;
  options.step = "native";
  options.form = form;
  options.weights = weights;
  options.memory = options.derived = rows;
  options.slots = kStreams;
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    Formats, NativeSpeculation,
    ::testing::Values(Engine("projected", "f32", "f32"),
                      Engine("absorbed", "bf16", "bf16"),
                      Engine("projected", "int8", "f16")),
    [](const ::testing::TestParamInfo<StepRunnerOptions>& info) {
      return absl::StrCat(info.param.form, "_", info.param.weights);
    });

}  // namespace
}  // namespace txl
