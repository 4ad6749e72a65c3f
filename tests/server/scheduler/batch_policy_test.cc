#include "server/scheduler/batch_policy.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
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

using Rows = std::vector<int64_t>;

Rows Divided(const Rows& wanted, int64_t budget, size_t first = 0) {
  std::vector<size_t> members(wanted.size());
  std::iota(members.begin(), members.end(), 0);
  Rows rows(wanted.size(), 0);
  DivideRows(members, wanted, budget, first, rows);
  return rows;
}

TEST(DivideRows, NobodyGetsMoreThanAnotherThatWantsMore) {
  EXPECT_EQ(Divided({100, 3, 100}, 20), (Rows{9, 3, 8}));
  EXPECT_EQ(Divided({4, 4}, 20), (Rows{4, 4}));
}

TEST(DivideRows, FewerRowsThanMembersGoRound) {
  EXPECT_EQ(Divided({9, 9, 9}, 2, 0), (Rows{1, 1, 0}));
  EXPECT_EQ(Divided({9, 9, 9}, 2, 2), (Rows{1, 0, 1}));
  EXPECT_EQ(Divided({9, 9, 9}, 0), (Rows{0, 0, 0}));
}

Rows Passed(const std::vector<size_t>& order, const Rows& wanted,
            int64_t budget, size_t given = 0) {
  Rows rows(wanted.size(), 0);
  PassRows(order, wanted, budget, given, rows);
  return rows;
}

TEST(PassRows, GoToOneAfterTheOtherInTheirOrder) {
  EXPECT_EQ(Passed({0, 1, 2}, {10, 10, 10}, 15), (Rows{10, 5, 0}));
  EXPECT_EQ(Passed({0, 1}, {3, 4}, 20), (Rows{3, 4}));
  EXPECT_EQ(Passed({}, {}, 20), Rows());
}

TEST(PassRows, EveryEighthRowIsTheOldests) {
  EXPECT_EQ(Passed({2, 1, 0}, {90, 90, 90}, 16), (Rows{2, 0, 14}));
  Rows sum(2, 0);
  for (size_t step = 0; step < 80; ++step) {
    const Rows rows = Passed({1, 0}, {9, 9}, 1, step);
    sum[0] += rows[0];
    sum[1] += rows[1];
  }
  EXPECT_EQ(sum, (Rows{10, 70}));
}

// Members of tenants that all want `wanted` rows in each step.
class Steps {
 public:
  void Add(const std::string& tenant, double weight, int members,
           int64_t wanted) {
    for (int i = 0; i < members; ++i) {
      members_.push_back(tenants_.size());
      tenants_.push_back({tenant, weight});
      wanted_.push_back(wanted);
    }
    given_.resize(tenants_.size(), 0);
  }
  // The rows of one step, also added to what each was given.
  Rows Take(int64_t budget) {
    Rows rows(tenants_.size(), 0);
    shared_.Divide(tenants_, members_, wanted_, budget, rows);
    for (size_t i = 0; i < rows.size(); ++i) given_[i] += rows[i];
    return rows;
  }
  int64_t GivenTo(const std::string& tenant) const {
    int64_t sum = 0;
    for (size_t i = 0; i < tenants_.size(); ++i) {
      if (tenants_[i].name == tenant) sum += given_[i];
    }
    return sum;
  }
  const Rows& given() const { return given_; }
  Rows& wanted() { return wanted_; }

 private:
  TenantRows shared_{DivideRows};
  std::vector<TenantRows::Tenant> tenants_;
  std::vector<size_t> members_;
  Rows wanted_;
  Rows given_;
};

TEST(TenantRows, WhatIsThereForAllIsGivenToAll) {
  Steps steps;
  steps.Add("a", 1, 2, 5);
  steps.Add("b", 9, 1, 7);
  EXPECT_EQ(steps.Take(17), (Rows{5, 5, 7}));
}

TEST(TenantRows, ManyMembersGetNoMoreThanOne) {
  Steps steps;
  steps.Add("many", 1, 255, 1);
  steps.Add("one", 1, 1, 8);
  EXPECT_EQ(steps.Take(16).back(), 8);
}

TEST(TenantRows, WeightsOneTwoFourGetRowsOneTwoFour) {
  Steps steps;
  steps.Add("a", 1, 40, 1);
  steps.Add("b", 2, 80, 1);
  steps.Add("c", 4, 30, 1);
  for (int i = 0; i < 300; ++i) {
    const Rows rows = steps.Take(12);
    EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), int64_t{0}), 12);
  }
  EXPECT_NEAR(static_cast<double>(steps.GivenTo("b")) / steps.GivenTo("a"), 2,
              2 * 0.05);
  EXPECT_NEAR(static_cast<double>(steps.GivenTo("c")) / steps.GivenTo("a"), 4,
              4 * 0.05);
}

TEST(TenantRows, ATenantsMembersTakeTurnsWhateverItsShareIs) {
  Steps steps;
  steps.Add("a", 1, 2, 1);  // a row in every other step
  steps.Add("b", 1, 9, 1);
  for (int i = 0; i < 200; ++i) steps.Take(1);
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(steps.given()[i], 50, 1);
  for (size_t i = 2; i < 11; ++i) EXPECT_NEAR(steps.given()[i], 11, 1);
}

TEST(TenantRows, WhoWantsLessThanItsShareIsServedInEveryStep) {
  Steps steps;
  steps.Add("little", 2, 1, 1);
  steps.Add("much", 9, 50, 10);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(steps.Take(10)[0], 1);
}

// However demand moves, nobody who wants rows goes without for longer than it
// takes to serve everybody once by weight.
TEST(TenantRows, NobodyStarvesWhileDemandMoves) {
  constexpr int kTenants = 40;
  constexpr int64_t kBudget = 16;
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    Steps steps;
    std::vector<double> weights;
    for (int t = 0; t < kTenants; ++t) {
      weights.push_back(1 + random() % 8);
      steps.Add("t" + std::to_string(t), weights.back(), 1, 1);
    }
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<double> others(kTenants, 0);
    for (int step = 0; step < 500; ++step) {
      for (int t = 1; t < kTenants; ++t) {
        steps.wanted()[t] = 1 + random() % 4;
      }
      const Rows rows = steps.Take(kBudget);
      for (int t = 0; t < kTenants; ++t) {
        others[t] = rows[t] > 0 ? 0 : others[t] + kBudget;
        ASSERT_LE(others[t], all / weights[t] + 2 * kTenants + kBudget)
            << "seed " << seed << " tenant " << t;
      }
    }
  }
}

}  // namespace

}  // namespace txl
