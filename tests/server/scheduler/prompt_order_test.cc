// How long prompts wait for their first tokens, simulated: PlanBatch with
// prompts that come and go, beside the rule that shares every step evenly.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "server/scheduler/batch_policy.h"

namespace txl {
namespace {

constexpr BatchLimits kLimits{
    .max_rows = 128, .prompt_rows_per_step = 64, .spare_rows = 512};

struct Prompt {
  int64_t arrives = 0;  // in which step
  int64_t rows = 0;
};

using Plan = std::vector<int64_t> (*)(absl::Span<const BatchCandidate>,
                                      uint64_t);

std::vector<int64_t> InOrder(absl::Span<const BatchCandidate> prompts,
                             uint64_t step) {
  return PlanBatch(prompts, kLimits, step);
}

std::vector<int64_t> Evenly(absl::Span<const BatchCandidate> prompts,
                            uint64_t step) {
  return PlanBatch(prompts, kLimits, step,
                   [step](bool, absl::Span<const size_t> members,
                          absl::Span<const int64_t> wanted, int64_t budget,
                          std::vector<int64_t>& rows) {
                     if (members.empty()) return;
                     // In their order of age, as prompts once stood.
                     std::vector<size_t> by_age(members.begin(), members.end());
                     std::sort(by_age.begin(), by_age.end());
                     DivideRows(by_age, wanted, budget,
                                step * budget % by_age.size(), rows);
                   });
}

// Steps from each prompt's arrival to its first token. Prompts stand in the
// order of their arrival.
std::vector<int64_t> Waits(const std::vector<Prompt>& prompts, Plan plan) {
  std::vector<int64_t> left;
  for (const Prompt& prompt : prompts) left.push_back(prompt.rows);
  std::vector<int64_t> waits(prompts.size(), 0);
  size_t done = 0;
  for (int64_t step = 0; done < prompts.size(); ++step) {
    std::vector<BatchCandidate> candidates;
    std::vector<size_t> whose;
    for (size_t i = 0; i < prompts.size(); ++i) {
      if (left[i] == 0 || prompts[i].arrives > step) continue;
      candidates.push_back({.prompt_rows = left[i]});
      whose.push_back(i);
    }
    const std::vector<int64_t> rows = plan(candidates, step);
    for (size_t k = 0; k < whose.size(); ++k) {
      const size_t i = whose[k];
      left[i] -= rows[k];
      if (left[i] > 0) continue;
      waits[i] = step + 1 - prompts[i].arrives;
      ++done;
    }
  }
  return waits;
}

double Mean(const std::vector<int64_t>& waits) {
  return static_cast<double>(
             std::accumulate(waits.begin(), waits.end(), int64_t{0})) /
         static_cast<double>(waits.size());
}

int64_t Alone(int64_t rows) { return Waits({Prompt{0, rows}}, InOrder)[0]; }

TEST(PromptOrder, EqualPromptsHaveTheirFirstTokensInSixTenthsOfTheTime) {
  for (const int64_t count : {8, 32, 128}) {
    for (const int64_t rows : {100, 1600}) {
      const std::vector<Prompt> prompts(count, Prompt{0, rows});
      const std::vector<int64_t> waits = Waits(prompts, InOrder);
      const std::vector<int64_t> even = Waits(prompts, Evenly);
      EXPECT_LE(Mean(waits), 0.6 * Mean(even)) << count << " of " << rows;
      EXPECT_EQ(*std::max_element(waits.begin(), waits.end()),
                *std::max_element(even.begin(), even.end()))
          << "the last one waits no longer";
    }
  }
}

TEST(PromptOrder, AShortOneBesideLongOnesTakesTwiceItsTimeAtMost) {
  for (const int64_t rows : {1, 50, 64, 200, 700}) {
    for (const int64_t arrives : {0, 17}) {
      std::vector<Prompt> prompts(31, Prompt{0, 8000});
      prompts.push_back({arrives, rows});
      EXPECT_LE(Waits(prompts, InOrder).back(), 2 * Alone(rows)) << rows;
    }
  }
}

TEST(PromptOrder, ALongOneEndsWhileShortOnesKeepComing) {
  std::vector<Prompt> prompts = {{0, 6400}};
  for (int64_t step = 0; step < 2000; ++step) prompts.push_back({step, 64});
  EXPECT_LE(Waits(prompts, InOrder)[0], 8 * Alone(6400));
}

// Over mixes of lengths and arrivals: the mean wait is no longer than with even
// shares, no step is lost, and whoever is passed waits at most until the share
// of the oldest has come to all who are older, and to himself.
TEST(PromptOrder, NobodyStarvesInRandomMixesAndTheMeanIsShorter) {
  double in_order = 0;
  double even = 0;
  for (uint32_t seed = 1; seed <= 2000; ++seed) {
    std::mt19937 random(seed);
    std::vector<Prompt> prompts(2 + random() % 40);
    for (Prompt& prompt : prompts) {
      prompt.arrives = static_cast<int64_t>(random() % 100);
      prompt.rows = int64_t{1} << random() % 12;
    }
    std::sort(
        prompts.begin(), prompts.end(),
        [](const Prompt& a, const Prompt& b) { return a.arrives < b.arrives; });
    const std::vector<int64_t> waits = Waits(prompts, InOrder);
    const std::vector<int64_t> shared = Waits(prompts, Evenly);
    ASSERT_LE(Mean(waits), 1.02 * Mean(shared)) << "seed " << seed;
    in_order += Mean(waits);
    even += Mean(shared);
    int64_t older = 0;
    int64_t last = 0;
    int64_t last_shared = 0;
    for (size_t i = 0; i < prompts.size(); ++i) {
      older += prompts[i].rows;
      const int64_t share = kLimits.prompt_rows_per_step / 8;
      ASSERT_LE(waits[i], older / share + static_cast<int64_t>(i) + 2)
          << "seed " << seed << " prompt " << i;
      last = std::max(last, prompts[i].arrives + waits[i]);
      last_shared = std::max(last_shared, prompts[i].arrives + shared[i]);
    }
    ASSERT_EQ(last, last_shared) << "seed " << seed;
  }
  EXPECT_LE(in_order, 0.75 * even);
}

}  // namespace
}  // namespace txl
