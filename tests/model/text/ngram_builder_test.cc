#include "model/text/ngram_builder.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace txl {
namespace {

using Ids = std::vector<int32_t>;

NgramTable Build(const Ids& ids, int32_t order, int64_t entries = 1000) {
  return BuildNgrams(ids, 1, {.order = order, .entries = entries});
}

TEST(NgramBuilderTest, GuessesWhatFollowedMostOften) {
  // Behind 1: 2, 2, 3. Met three times, right twice of three and one more.
  const NgramTable table = Build({1, 2, 1, 2, 1, 3}, 1);
  EXPECT_EQ(table.Next(Ids{1})->id, 2);
  EXPECT_EQ(table.Next(Ids{1})->level, kNgramLevels * 2 / 4);
  EXPECT_EQ(table.Next(Ids{2})->id, 1);
  EXPECT_FALSE(table.Next(Ids{3}).has_value());
}

TEST(NgramBuilderTest, WhatWasMetOnceIsNoRule) {
  EXPECT_EQ(Build({1, 2, 3, 4, 5}, 3).size(), 0);
  EXPECT_EQ(Build({}, 3).size(), 0);
  EXPECT_EQ(Build({4}, 3).size(), 0);
}

TEST(NgramBuilderTest, ALongerContextIsKeptWhereItSaysMore) {
  // 2 is followed by 5 behind 1, by 6 behind 3, three times each.
  Ids ids;
  for (int i = 0; i < 3; ++i) ids.insert(ids.end(), {1, 2, 5, 9, 3, 2, 6, 9});
  const NgramTable table = Build(ids, 2);
  EXPECT_EQ(table.Next(Ids{1, 2})->id, 5);
  EXPECT_EQ(table.Next(Ids{3, 2})->id, 6);
  // 9 is behind 5 whatever stands before it, as surely as behind 5 alone.
  EXPECT_EQ(table.Next(Ids{2, 5})->id, 9);
  // Those two, what is behind 5 9 and 6 9, and 2 behind 9 1, met less often.
  EXPECT_EQ(table.size(), Build(ids, 1).size() + 5);
}

TEST(NgramBuilderTest, KeepsTheCommonest) {
  Ids ids;
  for (int i = 0; i < 9; ++i) ids.insert(ids.end(), {1, 2});
  for (int i = 0; i < 3; ++i) ids.insert(ids.end(), {3, 4});
  const NgramTable table = Build(ids, 1, 2);
  EXPECT_EQ(table.size(), 2);
  EXPECT_TRUE(table.Next(Ids{1}).has_value());
  EXPECT_TRUE(table.Next(Ids{2}).has_value());
  EXPECT_FALSE(table.Next(Ids{3}).has_value());
}

// Of every context that was met twice or more: the guess of the longest one
// that is, or one that was met as often; but for the few without room.
TEST(NgramBuilderTest, GuessesAsCountingDoes) {
  constexpr size_t kOrder = 4;
  std::mt19937 random(3);
  Ids ids;
  for (int i = 0; i < 3000; ++i) {
    // Half of the ids depend on the two before them.
    ids.push_back(i < 2 || random() % 2 == 0
                      ? static_cast<int32_t>(random() % 6)
                      : (ids[i - 1] * 5 + ids[i - 2] * 3) % 6);
  }
  std::map<Ids, std::map<int32_t, int>> followed;
  for (size_t n = 1; n <= kOrder; ++n) {
    for (size_t i = n; i < ids.size(); ++i) {
      ++followed[Ids(ids.begin() + i - n, ids.begin() + i)][ids[i]];
    }
  }
  const NgramTable table = Build(ids, kOrder, 100'000);
  int looked_at = 0, agreed = 0;
  for (size_t i = kOrder; i < ids.size(); ++i) {
    const Ids context(ids.begin() + i - kOrder, ids.begin() + i);
    const auto& counts = followed[context];
    int all = 0, most = 0;
    for (const auto& [id, count] : counts) {
      all += count;
      most = std::max(most, count);
    }
    if (all < 2) continue;
    ++looked_at;
    const auto guess = table.Next(context);
    ASSERT_TRUE(guess.has_value());
    const auto right = counts.find(guess->id);
    agreed += right != counts.end() && right->second == most &&
              guess->level == kNgramLevels * most / (all + 1);
  }
  EXPECT_GT(agreed, looked_at * 97 / 100);
  EXPECT_GT(looked_at, 2000);
}

}  // namespace
}  // namespace txl
