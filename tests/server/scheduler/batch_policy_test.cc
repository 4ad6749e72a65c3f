#include "server/scheduler/batch_policy.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace txl {
namespace {

constexpr BatchCandidate kStream{.decode = true, .prompt_rows = 0};

BatchCandidate PromptOf(int64_t rows) {
  return {.decode = false, .prompt_rows = rows};
}

using Rows = std::vector<int64_t>;

TEST(BatchPolicy, NothingToDoGivesNoRows) {
  EXPECT_EQ(PlanBatch({}, {64, 32, 16}, 0), Rows());
}

TEST(BatchPolicy, EveryStreamGetsOneRowAndPromptsTheRest) {
  EXPECT_EQ(PlanBatch({{kStream, PromptOf(100), kStream}}, {64, 32, 16}, 0),
            (Rows{1, 16, 1}));
  EXPECT_EQ(PlanBatch({{kStream, PromptOf(100), kStream}}, {8, 32, 16}, 0),
            (Rows{1, 6, 1}));
}

TEST(BatchPolicy, ALongPromptLeavesAShortOneItsWholeNeed) {
  EXPECT_EQ(PlanBatch({{PromptOf(5000), PromptOf(3)}}, {64, 16, 16}, 0),
            (Rows{13, 3}));
}

TEST(BatchPolicy, EqualPromptsGoOneAfterTheOther) {
  EXPECT_EQ(
      PlanBatch({{PromptOf(50), PromptOf(50), PromptOf(50)}}, {64, 16, 16}, 0),
      (Rows{16, 0, 0}));
  EXPECT_EQ(
      PlanBatch({{PromptOf(50), PromptOf(50), PromptOf(50)}}, {64, 16, 10}, 0),
      (Rows{10, 6, 0}));
}

TEST(BatchPolicy, RowsThatComeLaterMakeAPromptLong) {
  EXPECT_EQ(PlanBatch({{PromptOf(8),
                        BatchCandidate{.prompt_rows = 4, .rows_later = 90}}},
                      {64, 8, 16}, 0),
            (Rows{8, 0}));
}

TEST(BatchPolicy, AnUrgentPromptGoesBeforeAShorterOne) {
  BatchCandidate urgent = PromptOf(50);
  urgent.priority = 3;
  EXPECT_EQ(PlanBatch({{PromptOf(5), urgent}}, {64, 16, 16}, 0), (Rows{2, 14}));
}

TEST(BatchPolicy, MoreStreamsThanRowsTakeTurns) {
  const std::vector<BatchCandidate> streams(7, kStream);
  Rows sum(7, 0);
  for (uint64_t turn = 0; turn < 7; ++turn) {
    const Rows rows = PlanBatch(streams, {3, 8, 16}, turn);
    for (size_t i = 0; i < 7; ++i) sum[i] += rows[i];
  }
  EXPECT_EQ(sum, Rows(7, 3));
}

TEST(BatchPolicy, StreamsThatFillTheStepLeavePromptsAnEighthOfIt) {
  for (const int32_t max_rows : {8, 64}) {
    std::vector<BatchCandidate> all(max_rows, kStream);
    all.push_back(PromptOf(20));
    const Rows rows = PlanBatch(all, {max_rows, 32, 16}, 3);
    EXPECT_EQ(rows.back(), max_rows / 8);
    EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), int64_t{0}), max_rows);
  }
}

TEST(BatchPolicy, APromptThatWantsLessLeavesStreamsTheRest) {
  std::vector<BatchCandidate> all(64, kStream);
  all.push_back(PromptOf(2));
  const Rows rows = PlanBatch(all, {64, 32, 16}, 3);
  EXPECT_EQ(rows.back(), 2);
  EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), int64_t{0}), 64);
}

TEST(BatchPolicy, AStepOfOneRowServesStreamsAndPromptsInTurn) {
  const std::vector<BatchCandidate> both = {kStream, PromptOf(4)};
  Rows sum(2, 0);
  for (uint64_t turn = 0; turn < 10; ++turn) {
    const Rows rows = PlanBatch(both, {1, 8, 16}, turn);
    EXPECT_EQ(rows[0] + rows[1], 1);
    sum[0] += rows[0];
    sum[1] += rows[1];
  }
  EXPECT_EQ(sum, (Rows{5, 5}));
}

class BatchPolicyPromises : public ::testing::Test {
 protected:
  void Check(const std::vector<BatchCandidate>& all, const BatchLimits& limits,
             uint64_t turn) {
    const Rows rows = PlanBatch(all, limits, turn);
    ASSERT_EQ(rows.size(), all.size());
    int64_t sum = 0;
    int64_t prompt_sum = 0;
    int64_t streams = 0;
    int64_t streams_in = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      sum += rows[i];
      ASSERT_GE(rows[i], 0);
      if (all[i].decode) {
        ++streams;
        streams_in += rows[i];
        ASSERT_LE(rows[i], 1);
      } else {
        prompt_sum += rows[i];
        ASSERT_LE(rows[i], std::min(all[i].prompt_rows, limits.spare_rows));
      }
    }
    ASSERT_LE(sum, limits.max_rows);
    ASSERT_LE(prompt_sum, limits.prompt_rows_per_step);
    ASSERT_EQ(sum > 0, !all.empty());
    const int64_t kept = std::max<int64_t>(1, limits.max_rows / 8);
    ASSERT_GE(streams_in, std::min<int64_t>(streams, limits.max_rows - kept));
    CheckOrder(all, limits, rows);
  }

  // Behind a prompt that still wants rows only the oldest one has any, and no
  // more than its share.
  void CheckOrder(const std::vector<BatchCandidate>& all,
                  const BatchLimits& limits, const Rows& rows) {
    const auto oldest =
        std::find_if(all.begin(), all.end(),
                     [](const BatchCandidate& one) { return !one.decode; });
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].decode) continue;
      const int64_t wanted = std::min(all[i].prompt_rows, limits.spare_rows);
      if (rows[i] == wanted) continue;
      for (size_t j = 0; j < all.size(); ++j) {
        if (all[j].decode || all[j].prompt_rows <= all[i].prompt_rows) continue;
        const bool is_oldest = &all[j] == &*oldest;
        ASSERT_LE(rows[j], is_oldest ? limits.prompt_rows_per_step / 8 + 1 : 0);
      }
    }
  }
};

TEST_F(BatchPolicyPromises, HoldForRandomCompanies) {
  std::mt19937 random(7);
  const auto upto = [&](int n) { return static_cast<int>(random() % (n + 1)); };
  for (int i = 0; i < 20'000; ++i) {
    std::vector<BatchCandidate> all(upto(12));
    for (BatchCandidate& one : all) {
      one = upto(1) == 1 ? kStream : PromptOf(1 + upto(40));
    }
    const BatchLimits limits{1 + upto(20), 1 + upto(20), 8 + upto(16)};
    ASSERT_NO_FATAL_FAILURE(Check(all, limits, random()));
  }
}

}  // namespace
}  // namespace txl
