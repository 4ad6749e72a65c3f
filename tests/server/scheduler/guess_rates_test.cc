#include "server/scheduler/guess_rates.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

TEST(GuessRatesTest, BeginsWithWhatSourcesSay) {
  const GuessRates rates;
  for (int32_t level = 0; level < kNgramLevels; ++level) {
    EXPECT_NEAR(rates.Rate(level), (level + 0.5) / kNgramLevels, 1e-9);
  }
  for (int32_t grade = kNgramLevels + 1; grade < kFirstDraftGrade; ++grade) {
    EXPECT_GT(rates.Rate(grade), rates.Rate(grade - 1));
  }
  for (const double probability : {0.1, 0.4, 0.95}) {
    EXPECT_NEAR(rates.Rate(DraftGrade(probability)), probability, 0.07);
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
  EXPECT_EQ(before, kFirstDraftGrade - 1);
}

TEST(GuessRatesTest, ADraftThatIsSurerHasAHigherGrade) {
  EXPECT_EQ(DraftGrade(0), kFirstDraftGrade);
  EXPECT_EQ(DraftGrade(0.5), kFirstDraftGrade + kDraftGrades / 2);
  EXPECT_EQ(DraftGrade(1), kGrades - 1);
}

TEST(GuessRatesTest, ADraftsGradesHaveOneRateTogether) {
  GuessRates rates;
  const double before = rates.draft_rate();
  for (int i = 0; i < 100; ++i) rates.Note(OwnGrade(3), true);
  EXPECT_EQ(rates.draft_rate(), before);
  for (int i = 0; i < 400; ++i)
    rates.Note(DraftGrade((i % 4) / 4.0), i % 4 == 3);
  EXPECT_NEAR(rates.draft_rate(), 0.25, 0.05);
  EXPECT_GT(rates.Rate(DraftGrade(0.75)), 0.9);
}

}  // namespace
}  // namespace txl
