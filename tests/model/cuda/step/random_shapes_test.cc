// Steps of up to 512 rows on models of random shape have the numbers of the
// native step for CPUs. A seed says everything: the shape, who is in which
// step, at which position; a device takes thousands, the emulator a few.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/model/cuda/step/cuda_driver.h"

namespace txl {
namespace {

// Log-probabilities of both go through float32 sums in another order.
constexpr double kTolerance = 2e-5;

#if defined(TXL_DEVICE_TEST)
constexpr int kSeeds = 4000;
constexpr int kLeastSeeds = 300;
constexpr int kMostRows = 512;
// Beyond the least only as many as a minute holds, on the host's side too.
constexpr std::chrono::seconds kMostTime{40};
#else
constexpr int kSeeds = 6;
constexpr int kLeastSeeds = 6;
constexpr int kMostRows = 9;
constexpr std::chrono::seconds kMostTime{1000};
#endif

// Sessions, the first of which has a past that some others share.
struct Case {
  RandomCase model;
  int sessions = 1;
  int64_t past = 0;  // rows that it was fed; more than the memory holds, or 0
  // Tokens that each session feeds in each step that all share.
  std::vector<std::vector<int64_t>> counts;
};

// From 1 to `most`, small numbers more often than large ones.
int LogUniform(std::mt19937& random, int most) {
  int top = 1;
  while (2 * top <= most && random() % 8 < 5) top *= 2;
  return std::min<int>(most, top + static_cast<int>(random() % top));
}

Case CaseOfSeed(uint32_t seed) {
  std::mt19937 random(seed);
  Case out;
  ModelConfig config = RandomConfig(seed);
  // More heads than a block of the attention takes (16) now and then.
  if (random() % 4 == 0) {
    config.n_head = 6 + static_cast<int64_t>(random() % 14);
  }
  out.model = CaseOf(config, seed, config.mem_len + 200);
  // Now and then as many rows as there can be, which are the host's to compute
  // too; small steps are tried more often.
  out.sessions = seed % 50 == 0 ? kMostRows : LogUniform(random, kMostRows);
  if (random() % 3 != 0) {
    out.past = 1 + static_cast<int64_t>(random() % (config.mem_len + 100));
  }
  for (int i = 0; i < 3; ++i) {
    std::vector<int64_t> counts(out.sessions, 1);
    int64_t room = kMostRows - out.sessions;
    for (int64_t& count : counts) {
      const int64_t more = random() % 8 == 0 ? 1 + random() % 15 : 0;
      count += std::min(more, room);
      room -= std::min(more, room);
    }
    out.counts.push_back(counts);
  }
  return out;
}

// Both steps, fed the same.
class Pair {
 public:
  explicit Pair(const Case& given) : case_(given) {
    CudaStepOptions options;
    options.slots = given.sessions;
    options.spare_rows = 16;
    options.max_rows = kMostRows;
    step_ = MakeCudaStep(given.model, options);
    NativeStepOptions native;
    native.slots = given.sessions;
    native.spare_rows = 16;
    native.max_rows = kMostRows;
    native.formats.form = AttentionForm::kAbsorbed;
    auto oracle =
        CreateNativeStep(given.model.config, given.model.weights, native);
    if (!oracle.ok()) throw std::runtime_error(oracle.status().ToString());
    oracle_ = *std::move(oracle);
    for (int32_t s = 0; s < given.sessions; ++s) oracle_->Clear(s);
    positions_.resize(given.sessions);
  }

  // The largest difference of a log-probability.
  double FeedPast() {
    double worst = 0;
    const int64_t most = std::min<int64_t>(16, kMostRows);
    for (int64_t at = 0; at < case_.past; at += most) {
      std::vector<int64_t> counts(case_.sessions);
      counts[0] = std::min(most, case_.past - at);
      worst = std::max(worst, Feed(counts));
    }
    // Of those who begin, some have nothing to look at yet.
    for (int32_t s = 2; s < case_.sessions; s += 3) {
      step_->Copy(0, s);
      oracle_->Copy(0, s);
      positions_[s] = positions_[0];
    }
    return worst;
  }

  double Feed(const std::vector<int64_t>& counts) {
    std::vector<std::vector<int32_t>> tokens(counts.size());
    std::vector<int32_t> outputs(
        *std::max_element(counts.begin(), counts.end()));
    std::iota(outputs.begin(), outputs.end(), 0);
    std::vector<StepSegment> segments;
    for (int32_t s = 0; s < static_cast<int32_t>(counts.size()); ++s) {
      if (counts[s] == 0) continue;
      for (int64_t i = 0; i < counts[s]; ++i) {
        tokens[s].push_back(TokenAt(s, positions_[s] + i));
      }
      segments.push_back({s, positions_[s], tokens[s],
                          absl::MakeSpan(outputs).first(counts[s])});
      positions_[s] += counts[s];
    }
    return WorstDifference(LogprobsOf(*step_, step_->Run(segments)),
                           LogprobsOf(*oracle_, oracle_->Run(segments)));
  }

 private:
  // Sessions feed different texts.
  int32_t TokenAt(int32_t session, int64_t position) const {
    const std::vector<int32_t>& ids = case_.model.tokens;
    return ids[(position + int64_t{7} * session) %
               static_cast<int64_t>(ids.size())];
  }

  const Case& case_;
  std::unique_ptr<ModelStep> step_, oracle_;
  std::vector<int64_t> positions_;
};

TEST(CudaRandomShapesTest, HaveTheNumbersOfTheNativeStepForCpus) {
  const auto begin = std::chrono::steady_clock::now();
  int seed = 0;
  int64_t rows = 0;
  double worst = 0;
  for (; seed < kSeeds; ++seed) {
    const auto spent = std::chrono::steady_clock::now() - begin;
    if (seed >= kLeastSeeds && spent > kMostTime) break;
    const Case given = CaseOfSeed(seed);
    Pair pair(given);
    double difference = pair.FeedPast();
    for (const std::vector<int64_t>& counts : given.counts) {
      difference = std::max(difference, pair.Feed(counts));
      rows += std::accumulate(counts.begin(), counts.end(), int64_t{0});
    }
    worst = std::max(worst, difference);
    ASSERT_LE(difference, kTolerance)
        << "seed " << seed << ", " << given.sessions << " sessions behind "
        << given.past << " tokens, " << given.model.Describe();
  }
  RecordProperty("seeds", seed);
  RecordProperty("worst_difference", std::to_string(worst));
  std::cout << "random shapes " << seed << ", rows " << rows
            << ", worst difference " << worst << "\n";
}

}  // namespace
}  // namespace txl
