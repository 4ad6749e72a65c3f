#include "model/text/ngram_builder.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace txl
