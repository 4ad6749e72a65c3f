// The native step under the real scheduler, with either runner: what a session
// gives is a function of its ids and its parameters alone, bit for bit.
// Sixty-four sessions of mixed age run on fewer slots, their texts cut at
// random into calls and segments, moved out and in as state images and rebuilt
// from their last ids, tokens guessed ahead of them from what they are known to
// say; each gives what it gives alone, uncut, unguessed, on one thread.

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/text/ngram_table.h"
#include "server/engine/load_step_runner.h"
#include "server/scheduler/scheduler.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/recording_sink.h"
#include "tests/model/sampling/some_kinds.h"
#include "tests/model/torch/golden_case.h"
#include "tests/server/engine/test_runners.h"
#include "tests/server/engine/timed_runner.h"
#include "tests/server/metrics/conservation.h"
#include "tests/server/mixed_sampling.h"

namespace txl {
namespace {

using Ids = std::vector<int32_t>;

constexpr int kSessions = 64;
constexpr int kRounds = 3;

// Feed `text`, score `scored` (when there is some), generate after `prompt`.
struct Round {
  Ids text, scored, prompt;
  int32_t tokens = 0;
};

struct Script {
  std::vector<Round> rounds;
  SamplingParams sampling;
};

// What came of a session: its generated ids and all log-probabilities.
struct Outcome {
  Ids ids;
  std::vector<float> logprobs;
};

using Random = std::mt19937_64;

int Below(Random& random, int64_t bound) {
  return static_cast<int>(random() % static_cast<uint64_t>(bound));
}

Ids RandomIds(Random& random, int64_t count, int64_t vocabulary) {
  Ids ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(Below(random, vocabulary));
  return ids;
}

Script MakeScript(int session, int64_t vocabulary) {
  Random random(session);
  Script script;
  script.sampling = SamplingOf(session);
  for (int r = 0; r < kRounds; ++r) {
    Round round;
    round.text = RandomIds(random, 1 + Below(random, 60), vocabulary);
    if (r == session % kRounds) {
      round.scored = RandomIds(random, 2 + Below(random, 20), vocabulary);
    }
    round.prompt = RandomIds(random, Below(random, 8), vocabulary);
    round.tokens = 1 + Below(random, 60);
    script.rounds.push_back(std::move(round));
  }
  return script;
}

struct Call {
  TurnKind kind = TurnKind::kGenerate;
  Ids input;
  int32_t tokens = 0;
};

// As few calls as the script allows.
std::vector<Call> UncutCalls(const Script& script) {
  std::vector<Call> calls;
  for (const Round& round : script.rounds) {
    Ids prompt = round.text;
    if (!round.scored.empty()) {
      calls.push_back({TurnKind::kAppend, std::move(prompt)});
      calls.push_back({TurnKind::kScore, round.scored});
      prompt.clear();
    }
    prompt.insert(prompt.end(), round.prompt.begin(), round.prompt.end());
    calls.push_back({TurnKind::kGenerate, std::move(prompt), round.tokens});
  }
  return calls;
}

// `ids` in appended pieces of random lengths.
void AppendInPieces(const Ids& ids, Random& random, std::vector<Call>* calls) {
  for (size_t begin = 0; begin < ids.size();) {
    const size_t end = std::min(
        ids.size(), begin + 1 + static_cast<size_t>(Below(random, 40)));
    calls->push_back(
        {TurnKind::kAppend, Ids(ids.begin() + begin, ids.begin() + end)});
    begin = end;
  }
}

std::vector<Call> CutCalls(const Script& script, Random& random) {
  std::vector<Call> calls;
  for (const Round& round : script.rounds) {
    AppendInPieces(round.text, random, &calls);
    if (!round.scored.empty())
      calls.push_back({TurnKind::kScore, round.scored});
    const auto cut =
        round.prompt.begin() +
        Below(random, static_cast<int64_t>(round.prompt.size()) + 1);
    AppendInPieces(Ids(round.prompt.begin(), cut), random, &calls);
    calls.push_back(
        {TurnKind::kGenerate, Ids(cut, round.prompt.end()), round.tokens});
  }
  return calls;
}

enum class Runner {
  kDevice,    // samples on the device thread
  kSampling,  // as a device that samples itself: the host learns tokens late
};

std::unique_ptr<StepRunner> MakeRunner(const GoldenCase& golden,
                                       StepRunnerOptions options, Runner kind) {
  options.kinds = SomeTable(golden.config.vocab_size);
  if (kind == Runner::kSampling) {
    return MakeTestRunner(RunnerKind::kSampling, golden, options).runner;
  }
  auto runner =
      CreateStepRunner(golden.config, golden.weights, golden.name, options);
  if (!runner.ok()) throw std::runtime_error(runner.status().ToString());
  return *std::move(runner);
}

StepRunnerOptions Engine(const std::string& form, int32_t threads,
                         int32_t slots) {
  StepRunnerOptions options;
  options.step = "native";
  options.form = form;
  options.threads = threads;
  options.slots = slots;
  options.spare_rows = 16;
  options.max_rows = 80;
  return options;
}

// A scheduler without a thread, on the real engine. A step takes the same time
// with more rows in it, as it is told: a guess is always worth its row.
class Server {
 public:
  // Guesses nothing without a table of n-grams.
  Server(const GoldenCase& golden, const StepRunnerOptions& options,
         Runner kind, std::shared_ptr<const NgramTable> ngrams = nullptr)
      : store_(SessionStoreOptions(), &clock_),
        runner_(MakeRunner(golden, options, kind), 1e-3) {
    SchedulerOptions scheduling;
    scheduling.prompt_rows_per_step = 40;
    scheduling.park_events = 4;
    scheduling.ngrams = std::move(ngrams);
    if (scheduling.ngrams == nullptr) scheduling.speculate_tokens = 0;
    scheduler_ = std::make_unique<Scheduler>(scheduling, &runner_, &store_,
                                             &metrics_, &clock_, false);
  }

  // The turn's results go to the sink that is returned.
  std::shared_ptr<RecordingSink> Start(const std::string& session,
                                       const Call& call,
                                       const SamplingParams& sampling,
                                       uint64_t* key) {
    auto sink = std::make_shared<RecordingSink>();
    auto lease = store_.Acquire(SessionName::OfDefaultTenant(session));
    EXPECT_TRUE(lease.ok()) << lease.status();
    if (!lease.ok()) return sink;
    *key = lease->key();
    Turn turn;
    turn.kind = call.kind;
    turn.lease = *std::move(lease);
    turn.input = call.input;
    turn.sampling = sampling;
    turn.stop.max_tokens = call.tokens;
    turn.sink = sink;
    turn.cancel = std::make_shared<CancelToken>();
    const absl::Status status = scheduler_->Submit(std::move(turn));
    EXPECT_TRUE(status.ok()) << status;
    return sink;
  }

  bool Step() { return scheduler_->RunOnce(absl::ZeroDuration()); }
  SessionStore& store() { return store_; }
  Snapshot snapshot() const { return metrics_.Get(); }

 private:
  FakeClock clock_;
  Metrics metrics_;
  SessionStore store_;
  TimedRunner runner_;
  std::unique_ptr<Scheduler> scheduler_;
};

// One session on its way through its calls.
struct Progress {
  std::string id;
  SamplingParams sampling;
  std::vector<Call> calls;
  size_t next = 0;
  std::shared_ptr<RecordingSink> running;
  uint64_t key = 0;
  Outcome outcome;

  bool done() const { return running == nullptr && next == calls.size(); }

  void StartNext(Server& server) {
    running = server.Start(id, calls[next++], sampling, &key);
  }
  // Takes the results of a turn that has ended.
  void TakeEnd() {
    if (running == nullptr || !running->ended()) return;
    EXPECT_TRUE(running->failed().ok()) << running->failed();
    EXPECT_EQ(running->violations(), std::vector<std::string>());
    for (const TokenEvent& token : running->tokens()) {
      outcome.ids.push_back(token.token_id);
      outcome.logprobs.push_back(token.logprob);
    }
    for (const ScoredToken& token : running->scored()) {
      outcome.logprobs.push_back(token.logprob.value_or(0));
    }
    running = nullptr;
  }
};

Progress MakeProgress(Server& server, int session, const Script& script,
                      std::vector<Call> calls) {
  Progress progress;
  progress.id = absl::StrCat("session-", session);
  progress.sampling = script.sampling;
  progress.calls = std::move(calls);
  EXPECT_TRUE(
      server.store()
          .Create(SessionName::OfDefaultTenant(progress.id), std::nullopt)
          .ok());
  return progress;
}

Outcome RunAlone(const GoldenCase& golden, const StepRunnerOptions& options,
                 int session, const Script& script) {
  Server server(golden, options, Runner::kDevice);
  Progress progress = MakeProgress(server, session, script, UncutCalls(script));
  while (!progress.done()) {
    if (progress.running == nullptr) progress.StartNext(server);
    while (server.Step()) {
    }
    progress.TakeEnd();
    if (::testing::Test::HasFailure()) break;
  }
  return progress.outcome;
}

// Turns begin at random moments; now and then an idle session's image is lost.
// Every other session's reader takes an event now and then.
std::vector<Outcome> RunTogether(Server& server,
                                 const std::vector<Script>& scripts) {
  Random random(7);
  std::vector<Progress> sessions;
  for (int s = 0; s < kSessions; ++s) {
    sessions.push_back(
        MakeProgress(server, s, scripts[s], CutCalls(scripts[s], random)));
  }
  const auto done = [](const Progress& session) { return session.done(); };
  while (!std::all_of(sessions.begin(), sessions.end(), done) &&
         !::testing::Test::HasFailure()) {
    for (Progress& session : sessions) {
      session.TakeEnd();
      if (session.running != nullptr && session.running->Unsent() > 0 &&
          Below(random, 4) == 0) {
        session.running->Read(1);
      }
      if (session.running != nullptr || session.done()) continue;
      if (session.next > 0 && Below(random, 40) == 0) {
        server.store().DropImage(session.key);
      }
      if (Below(random, 3) != 0) continue;
      session.StartNext(server);
      if (session.key % 2 == 0) session.running->StopReading();
    }
    server.Step();
  }
  std::vector<Outcome> outcomes;
  for (Progress& session : sessions) {
    outcomes.push_back(std::move(session.outcome));
  }
  return outcomes;
}

// What the sessions say: good guesses, but where two say different things.
std::shared_ptr<const NgramTable> TableOf(
    const std::vector<Outcome>& outcomes) {
  Ids all;
  for (const Outcome& outcome : outcomes) {
    // A guess is of what was met twice.
    for (int i = 0; i < 2; ++i) {
      all.insert(all.end(), outcome.ids.begin(), outcome.ids.end());
    }
  }
  return std::make_shared<const NgramTable>(
      BuildNgrams(all, 0, {.order = 4, .entries = 100'000}));
}

struct Engines {
  const char* golden;
  const char* form;
  Runner runner = Runner::kDevice;

  friend void PrintTo(const Engines& engines, std::ostream* out) {
    *out << engines.golden << " " << engines.form;
    if (engines.runner == Runner::kSampling) *out << " sampling";
  }
};

class NativeCompany : public ::testing::TestWithParam<Engines> {};

TEST_P(NativeCompany, ChangesNoBitOfAnySession) {
  const GoldenCase golden = LoadGoldenCase(GetParam().golden, at::kFloat);
  std::vector<Script> scripts;
  std::vector<Outcome> alone;
  for (int s = 0; s < kSessions; ++s) {
    scripts.push_back(MakeScript(s, golden.config.vocab_size));
    alone.push_back(
        RunAlone(golden, Engine(GetParam().form, 1, 1), s, scripts[s]));
  }
  for (const int32_t threads : {1, 2}) {
    Server server(golden, Engine(GetParam().form, threads, 24),
                  GetParam().runner, TableOf(alone));
    const std::vector<Outcome> together = RunTogether(server, scripts);
    for (int s = 0; s < kSessions; ++s) {
      EXPECT_EQ(together[s].ids, alone[s].ids) << "session " << s;
      EXPECT_EQ(together[s].logprobs, alone[s].logprobs) << "session " << s;
    }
    const Snapshot end = server.snapshot();
    EXPECT_EQ(BrokenLaws(end), std::vector<std::string>());
    // Every cluster of every distribution was computed or skipped.
    ASSERT_EQ(end.softmax_tails.size(), golden.config.cutoffs.size());
    for (const SoftmaxTail& tail : end.softmax_tails) {
      EXPECT_EQ(tail.computed + tail.skipped,
                end.rows_decode + end.rows_score -
                    (end.tokens_guessed - end.guesses_accepted));
      EXPECT_GT(tail.computed, 0);
      EXPECT_GT(tail.skipped, 0);
    }
    // The run was what it is meant to be.
    EXPECT_GT(end.sessions_moved_in, kSessions);
    EXPECT_GT(end.rows_rebuild, 0);
    EXPECT_GT(end.parked_moves, 10);
    EXPECT_GT(end.rows_decode, 4 * end.steps_with_decode);
    if (GetParam().runner == Runner::kDevice) {
      EXPECT_GT(end.guesses_accepted, 0);
      EXPECT_GT(end.tokens_guessed, end.guesses_accepted);
    } else {
      EXPECT_EQ(end.tokens_guessed, 0);
    }
  }
}

// Window and clamp, tables, adaptive softmax, both norms, zero start.
INSTANTIATE_TEST_SUITE_P(
    Models, NativeCompany,
    ::testing::Values(
        Engines{"kimi-char", "projected"}, Engines{"kimi-char", "absorbed"},
        Engines{"kimi-adaptive-div2", "projected"},
        Engines{"kimi-samelength-clamp", "absorbed"},
        Engines{"kimi-shaw-clamp", "projected"},
        Engines{"hf-prelnorm-tied-r", "projected"},
        Engines{"nvidia-adaptive", "absorbed"}, Engines{"thu", "projected"},
        Engines{"kimi-adaptive-div2", "absorbed", Runner::kSampling}),
    [](const ::testing::TestParamInfo<Engines>& info) {
      std::string name = absl::StrCat(
          info.param.golden, "_", info.param.form,
          info.param.runner == Runner::kSampling ? "_sampling" : "");
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

}  // namespace
}  // namespace txl
