#include "model/step/self_test_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace txl {
namespace {

const VocabularyBins kBins{{10, 30, 31, 60}};

TEST(SelfTestSessionsTest, StartInEveryWayThatThereIs) {
  std::set<SelfTestStart> starts;
  std::set<int32_t> slots;
  for (const SelfTestSession& session : SelfTestSessions(kBins, 9)) {
    starts.insert(session.start);
    slots.insert(session.slot);
    EXPECT_LE(session.rows(), kSelfTestRows);
    EXPECT_EQ(
        std::accumulate(session.cuts.begin(), session.cuts.end(), int64_t{0}),
        session.rows());
    EXPECT_EQ(session.targets.size() + 1, session.prompt.size());
  }
  EXPECT_EQ(starts.size(), 4);
  EXPECT_THAT(slots, testing::ElementsAre(0, 4, 8));
}

TEST(SelfTestSessionsTest, FeedAndScoreTheEndsOfEveryBin) {
  std::set<int32_t> fed, scored;
  for (const SelfTestSession& session : SelfTestSessions(kBins, 3)) {
    fed.insert(session.prompt.begin(), session.prompt.end());
    scored.insert(session.targets.begin(), session.targets.end());
  }
  for (const std::set<int32_t>& ids : {fed, scored}) {
    for (const int32_t id : {0, 9, 10, 29, 30, 31, 59}) {
      EXPECT_TRUE(ids.contains(id)) << id;
    }
    EXPECT_GE(*ids.begin(), 0);
    EXPECT_LT(*ids.rbegin(), 60);
  }
}

TEST(SelfTestSessionsTest, OneWordIsAVocabularyToo) {
  for (const SelfTestSession& session : SelfTestSessions({{1}}, 1)) {
    EXPECT_THAT(session.prompt, testing::Each(0));
  }
}

// A copy wants two slots.
TEST(SelfTestSessionsTest, WithOneSlotNothingIsCopied) {
  const auto sessions = SelfTestSessions(kBins, 1);
  EXPECT_EQ(sessions.size(), SelfTestSessions(kBins, 2).size() - 1);
  for (const SelfTestSession& session : sessions) {
    EXPECT_EQ(session.slot, 0);
    EXPECT_NE(session.start, SelfTestStart::kCopy);
  }
  EXPECT_EQ(SelfTestGroups(sessions).size(), sessions.size());
}

class GroupsTest : public testing::TestWithParam<int32_t> {};

TEST_P(GroupsTest, ShareNoSlotAndStandOnEarlierOnesThatAreStillThere) {
  const auto sessions = SelfTestSessions(kBins, GetParam());
  size_t next = 0;
  for (const SelfTestGroup group : SelfTestGroups(sessions)) {
    EXPECT_EQ(group.begin, next);
    next = group.end;
    std::set<int32_t> slots;
    for (size_t i = group.begin; i < group.end; ++i) {
      EXPECT_TRUE(slots.insert(sessions[i].slot).second);
      EXPECT_LT(sessions[i].from, static_cast<int>(group.begin));
      if (sessions[i].start != SelfTestStart::kCopy) continue;
      for (size_t k = sessions[i].from + 1; k < i; ++k) {
        EXPECT_NE(sessions[k].slot, sessions[sessions[i].from].slot);
      }
    }
  }
  EXPECT_EQ(next, sessions.size());
}

INSTANTIATE_TEST_SUITE_P(Slots, GroupsTest, testing::Values(1, 2, 3, 4, 100));

class StepsTest : public testing::TestWithParam<SelfTestLimits> {};

// Each row once, in order, and never more than a step or a slot holds.
TEST_P(StepsTest, RunEveryRowWithinTheLimits) {
  const auto sessions = SelfTestSessions(kBins, GetParam().slots);
  for (const SelfTestGroup group : SelfTestGroups(sessions)) {
    std::vector<int64_t> rows(sessions.size(), 0);
    for (const auto& step : SelfTestSteps(sessions, group, GetParam())) {
      int64_t sum = 0;
      std::set<size_t> seen;
      for (const SelfTestShare& share : step) {
        EXPECT_TRUE(seen.insert(share.session).second);
        EXPECT_EQ(share.first, rows[share.session]);
        EXPECT_GE(share.rows, 1);
        EXPECT_LE(share.rows, GetParam().spare);
        rows[share.session] += share.rows;
        sum += share.rows;
        // A drawn token is fed alone: it is the slot's first row.
        const auto prompt =
            static_cast<int64_t>(sessions[share.session].prompt.size());
        if (share.first + share.rows > prompt) {
          EXPECT_EQ(share.rows, 1);
        }
      }
      EXPECT_LE(sum, GetParam().max_rows);
    }
    for (size_t i = group.begin; i < group.end; ++i) {
      EXPECT_EQ(rows[i], sessions[i].rows());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Limits, StepsTest,
                         testing::Values(SelfTestLimits{1, 1, 8},
                                         SelfTestLimits{2, 3, 8},
                                         SelfTestLimits{4, 256, 64}));

}  // namespace

}  // namespace txl
