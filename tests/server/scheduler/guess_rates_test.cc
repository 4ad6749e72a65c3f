#include <gtest/gtest.h>

#include "server/scheduler/guesser.h"

namespace txl {
namespace {

TEST(GuessRatesTest, BeginsWithWhatSourcesSay) {
  const GuessRates rates;
  for (int32_t level = 0; level < kNgramLevels; ++level) {
    EXPECT_NEAR(rates.Rate(level), (level + 0.5) / kNgramLevels, 1e-9);
  }
  for (int32_t grade = kNgramLevels + 1; grade < kGrades; ++grade) {
    EXPECT_GT(rates.Rate(grade), rates.Rate(grade - 1));
  }
}

TEST(GuessRatesTest, LearnsEveryGradeByItself) {
  GuessRates rates;
  const double other = rates.Rate(4);
  for (int i = 0; i < 400; ++i) rates.Note(3, i % 4 == 0);
  EXPECT_NEAR(rates.Rate(3), 0.25, 0.05);
  EXPECT_EQ(rates.Rate(4), other);
}

TEST(GuessRatesTest, TheLastOnesTell) {
  GuessRates rates;
  for (int i = 0; i < 1000; ++i) rates.Note(0, false);
  EXPECT_LT(rates.Rate(0), 0.05);
  for (int i = 0; i < 200; ++i) rates.Note(0, true);
  EXPECT_GT(rates.Rate(0), 0.9);
  EXPECT_LT(rates.Rate(0), 1);
}

TEST(GuessRatesTest, TheGainIsTheMeanOfTheLastSteps) {
  GuessRates rates;
  EXPECT_GT(rates.gain(), 0);
  for (int i = 0; i < 200; ++i) rates.NoteGain(3);
  EXPECT_NEAR(rates.gain(), 3, 0.01);
  for (int i = 0; i < 200; ++i) rates.NoteGain(i % 2);
  EXPECT_NEAR(rates.gain(), 0.5, 0.05);
}

TEST(GuessRatesTest, MoreOfTheSameIdsAreAHigherGrade) {
  EXPECT_EQ(OwnGrade(1), kNgramLevels);
  int32_t before = OwnGrade(1);
  for (int64_t same = 2; same < 100; ++same) {
    EXPECT_GE(OwnGrade(same), before);
    before = OwnGrade(same);
  }
  EXPECT_EQ(before, kGrades - 1);
}

}  // namespace
}  // namespace txl
