#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "server/scheduler/guesser.h"

namespace txl {
namespace {

using Ids = std::vector<int32_t>;

TokenSequence Sequence(const Ids& ids) {
  TokenSequence sequence;
  sequence.Append(ids);
  return sequence;
}

TEST(OwnNgramsTest, FindsWhereTheLastIdsStoodBefore) {
  const TokenSequence ids = Sequence({1, 2, 3, 4, 9, 1, 2, 3});
  OwnNgrams own;
  const auto match = own.Find(ids);
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->next, 3);
  EXPECT_EQ(match->same_ids, 3);
}

TEST(OwnNgramsTest, TheLatestPlaceIsTaken) {
  const TokenSequence ids = Sequence({1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3});
  EXPECT_EQ(OwnNgrams().Find(ids)->next, 7);
}

TEST(OwnNgramsTest, ALongEndGoesBeforeALaterShortOne) {
  Ids ids = {10, 11, 12, 13, 14, 15, 16, 17, 1};  // 1 behind eight ids
  ids.insert(ids.end(), {15, 16, 17, 2});         // 2 behind the last three
  ids.insert(ids.end(), {10, 11, 12, 13, 14, 15, 16, 17});
  const auto match = OwnNgrams().Find(Sequence(ids));
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->next, 8);
  EXPECT_EQ(match->same_ids, 8);
}

TEST(OwnNgramsTest, FewIdsOrNewOnesAreNowhere) {
  EXPECT_FALSE(OwnNgrams().Find(Sequence({})).has_value());
  EXPECT_FALSE(OwnNgrams().Find(Sequence({1, 2})).has_value());
  EXPECT_FALSE(OwnNgrams().Find(Sequence({1, 2, 3, 4, 5})).has_value());
}

TEST(OwnNgramsTest, GoesOnAsTheSessionGrows) {
  OwnNgrams own;
  TokenSequence ids = Sequence({7, 8, 9, 1});
  EXPECT_FALSE(own.Find(ids).has_value());
  for (const int32_t id : {7, 8}) {
    ids.Append({id});
    EXPECT_FALSE(own.Find(ids).has_value());
  }
  ids.Append({9});
  EXPECT_EQ(own.Find(ids)->next, 3);
}

// Whatever lies at a place, what is found was there: the ids before it are the
// session's last ones, as many as it says.
TEST(OwnNgramsTest, WhatItFindsIsTrue) {
  std::mt19937 random(5);
  OwnNgrams own;
  TokenSequence ids;
  int found = 0;
  for (int i = 0; i < 20'000; ++i) {
    ids.Append({static_cast<int32_t>(random() % 12)});
    const auto match = own.Find(ids);
    if (!match.has_value()) continue;
    ++found;
    ASSERT_LT(match->next, ids.size());
    ASSERT_GE(match->same_ids, OwnNgrams::kShort);
    for (int64_t back = 1; back <= match->same_ids; ++back) {
      ASSERT_EQ(ids[match->next - back], ids[ids.size() - back]);
    }
  }
  EXPECT_GT(found, 1000);
}

TEST(OwnNgramsTest, ALongSessionIsLookedAtFromItsLastIdsOn) {
  Ids ids = {1, 2, 3, 4};
  for (int32_t i = 0; i < OwnNgrams::kOldest; ++i) ids.push_back(100 + i);
  ids.insert(ids.end(), {1, 2, 3});
  EXPECT_FALSE(OwnNgrams().Find(Sequence(ids)).has_value());
}

TEST(OwnNgramsTest, TakesWhatItSays) { EXPECT_LE(sizeof(OwnNgrams), 8400u); }

}  // namespace
}  // namespace txl
