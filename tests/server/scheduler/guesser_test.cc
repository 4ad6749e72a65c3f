#include "server/scheduler/guesser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "model/text/ngram_table.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Ids = std::vector<int32_t>;

Ids GuessBehind(Guesser& guesser, const Ids& ids, const GuessLimits& limits) {
  TokenSequence sequence;
  sequence.Append(ids);
  const absl::Span<const int32_t> guesses = guesser.Guess(sequence, limits);
  return {guesses.begin(), guesses.end()};
}

NgramTable Counting() {
  Ids text;
  for (int i = 0; i < 200; ++i) text.push_back(i % 10);
  return BuildNgrams(text, 0, {.order = 4, .entries = 100});
}

TEST(GuesserTest, GuessesFromTheTableIdById) {
  const NgramTable table = Counting();
  GuessRates rates;
  Guesser guesser(&table, &rates);
  EXPECT_THAT(GuessBehind(guesser, {6}, {.most = 4, .floor = 0.3}),
              ElementsAre(7, 8, 9, 0));
  EXPECT_THAT(GuessBehind(guesser, {6}, {.most = 0, .floor = 0.3}), IsEmpty());
}

TEST(GuesserTest, EndsWhereTheChanceOfAllIsBelowTheFloor) {
  const NgramTable table = Counting();
  GuessRates rates;
  Guesser guesser(&table, &rates);
  // A level's guesses are right 15 times of 16 before anything is seen.
  EXPECT_EQ(GuessBehind(guesser, {6}, {.most = 8, .floor = 0.8}).size(), 3u);
  EXPECT_THAT(GuessBehind(guesser, {6}, {.most = 8, .floor = 0.95}), IsEmpty());
}

TEST(GuesserTest, GuessesFromTheSessionsOwnIds) {
  GuessRates rates;
  Guesser guesser(nullptr, &rates);
  const Ids ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 40, 41, 1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_THAT(GuessBehind(guesser, ids, {.most = 3, .floor = 0.1}),
              ElementsAre(9, 40, 41));
  Guesser short_one(nullptr, &rates);
  EXPECT_THAT(GuessBehind(short_one, {1, 2}, {.most = 3, .floor = 0}),
              IsEmpty());
}

TEST(GuesserTest, TheBetterSourceSpeaks) {
  const NgramTable table = Counting();
  GuessRates rates;
  Guesser guesser(&table, &rates);
  // The session went on with 7 behind 4, 5, 6 once; the table is surer.
  const Ids agreed = {4, 5, 6, 1, 1, 4, 5, 6};
  EXPECT_THAT(GuessBehind(guesser, agreed, {.most = 1, .floor = 0}),
              ElementsAre(7));
  // Until the session has shown otherwise.
  const GuessLimits one = {.most = 1, .floor = 0};
  for (int i = 0; i < 100; ++i) {
    GuessBehind(guesser, agreed, one);
    guesser.Saw(1);
  }
  EXPECT_THAT(GuessBehind(guesser, agreed, one), ElementsAre(1));
}

TEST(GuesserTest, LearnsFromWhatFollowed) {
  const NgramTable table = Counting();
  GuessRates rates;
  Guesser guesser(&table, &rates);
  const double before = guesser.gain();
  for (int i = 0; i < 100; ++i) {
    GuessBehind(guesser, {6}, {.most = 3, .floor = 0});
    EXPECT_TRUE(guesser.waits());
    for (const int32_t id : {7, 8, 9, 0}) guesser.Saw(id);
    EXPECT_FALSE(guesser.waits());
  }
  EXPECT_GT(guesser.gain(), 2.9);
  EXPECT_GT(guesser.gain(), before);
  // A turn after it begins with that.
  EXPECT_GT(rates.Rate(kNgramLevels - 1), 0.98);
  for (int i = 0; i < 100; ++i) {
    GuessBehind(guesser, {6}, {.most = 3, .floor = 0});
    guesser.Saw(5);
    EXPECT_FALSE(guesser.waits());
  }
  EXPECT_LT(guesser.gain(), 0.1);
}

TEST(GuesserTest, WhatIsBelowTheFloorIsLookedAtAndGainsNothing) {
  const NgramTable table = Counting();
  GuessRates rates;
  Guesser guesser(&table, &rates);
  const double before = rates.Rate(kNgramLevels - 1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(GuessBehind(guesser, {6}, {.most = 3, .floor = 1}), IsEmpty());
    guesser.Saw(7);
  }
  EXPECT_GT(rates.Rate(kNgramLevels - 1), before);
  EXPECT_LT(guesser.gain(), 0.1);
}

TEST(GuesserTest, NothingToGuessGainsNothing) {
  GuessRates rates;
  Guesser guesser(nullptr, &rates);
  for (int i = 0; i < 100; ++i) {
    GuessBehind(guesser, {1}, {.most = 3, .floor = 0});
    EXPECT_FALSE(guesser.waits());
    guesser.Saw(4);
  }
  EXPECT_LT(guesser.gain(), 0.1);
}

}  // namespace
}  // namespace txl
