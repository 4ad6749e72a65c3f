#include "server/scheduler/guesser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "model/text/ngram_builder.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Ids = std::vector<int32_t>;

Ids GuessBehind(Guesser& guesser, const Ids& ids, const GuessLimits& limits) {
  TokenSequence sequence;
  sequence.Append(ids);
  guesser.Begin(sequence, limits);
  EXPECT_FALSE(guesser.WantsDraft());
  return {guesser.given().begin(), guesser.given().end()};
}

// The same with a draft that goes on like this, and is so sure.
Ids GuessWithDraft(Guesser& guesser, const Ids& ids, const GuessLimits& limits,
                   const Ids& draft, double probability, int* asked = nullptr) {
  TokenSequence sequence;
  sequence.Append(ids);
  guesser.Begin(sequence, limits);
  while (guesser.WantsDraft()) {
    if (asked != nullptr) ++*asked;
    const size_t place = guesser.guesses().size();
    guesser.Hear(DraftGuess{draft[place], probability});
  }
  return {guesser.given().begin(), guesser.given().end()};
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

constexpr double kCheap = 0.1;  // a floor

TEST(GuesserTest, ADraftGuessesWhereNothingElseDoes) {
  GuessRates rates;
  Guesser guesser(nullptr, &rates);
  const GuessLimits limits = {
      .most = 4, .floor = kCheap, .draft_floor = kCheap};
  EXPECT_THAT(GuessWithDraft(guesser, {1}, limits, {5, 6, 7, 8, 9}, 0.99),
              ElementsAre(5, 6, 7, 8));
  // One that is not sure is looked at only.
  EXPECT_THAT(GuessWithDraft(guesser, {1}, limits, {5, 6, 7, 8, 9}, 0.01),
              IsEmpty());
  EXPECT_THAT(guesser.guesses(), ElementsAre(5));
}

TEST(GuesserTest, ADraftIsNotAskedWhereItsStepsAreNotWorthIt) {
  GuessRates rates;
  Guesser guesser(nullptr, &rates);
  int asked = 0;
  const GuessLimits dear = {.most = 4, .floor = kCheap, .draft_floor = 0.6};
  EXPECT_THAT(GuessWithDraft(guesser, {1}, dear, {5, 6}, 0.99, &asked),
              IsEmpty());
  EXPECT_EQ(asked, 0);
}

TEST(GuesserTest, ADraftIsNotAskedWhereOthersAreSurer) {
  const NgramTable table = Counting();
  GuessRates rates;
  Guesser guesser(&table, &rates);
  int asked = 0;
  const GuessLimits limits = {
      .most = 4, .floor = kCheap, .draft_floor = kCheap};
  EXPECT_THAT(GuessWithDraft(guesser, {6}, limits, {1, 1, 1, 1}, 1, &asked),
              ElementsAre(7, 8, 9, 0));
  EXPECT_EQ(asked, 0);
}

TEST(GuesserTest, LearnsHowOftenADraftIsRight) {
  GuessRates rates;
  Guesser guesser(nullptr, &rates);
  const GuessLimits limits = {.most = 2, .floor = kCheap, .draft_floor = 0.4};
  for (int i = 0; i < 60; ++i) {
    GuessWithDraft(guesser, {1}, limits, {5, 6, 7}, 0.3);
    guesser.Saw(5);
    guesser.Saw(6);
  }
  EXPECT_GT(rates.draft_rate(), 0.9);
  EXPECT_GT(rates.Rate(DraftGrade(0.3)), 0.9);
  EXPECT_GT(guesser.gain(), 1.8);
  int asked = 0;
  for (int i = 0; i < 60; ++i) {
    GuessWithDraft(guesser, {1}, limits, {5, 6, 7}, 0.3, &asked);
    guesser.Saw(9);
  }
  EXPECT_LT(rates.draft_rate(), 0.4);
  EXPECT_LT(asked, 80);
}

TEST(GuesserTest, ADraftThatWasNotWorthItIsTriedAgain) {
  GuessRates rates;
  Guesser guesser(nullptr, &rates);
  const GuessLimits limits = {.most = 2, .floor = 0.3, .draft_floor = 0.9};
  int asked = 0;
  for (int i = 0; i < 1024; ++i) {
    GuessWithDraft(guesser, {1}, limits, {5, 6, 7}, 0.01, &asked);
    guesser.Saw(9);
  }
  EXPECT_GE(asked, 4);
  EXPECT_LE(asked, 5);
}

TEST(GuesserTest, GoesOnWithoutADraftThatHasNothing) {
  GuessRates rates;
  Guesser guesser(nullptr, &rates);
  TokenSequence ids;
  ids.Append({1});
  guesser.Begin(ids, {.most = 4, .floor = kCheap, .draft_floor = kCheap});
  ASSERT_TRUE(guesser.WantsDraft());
  guesser.Hear(std::nullopt);
  EXPECT_FALSE(guesser.WantsDraft());
  EXPECT_THAT(guesser.given(), IsEmpty());
  EXPECT_FALSE(guesser.waits());
}

}  // namespace
}  // namespace txl
