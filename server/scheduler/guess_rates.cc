#include "server/scheduler/guess_rates.h"

#include <algorithm>

namespace txl {
namespace {

// What is believed of a grade beforehand weighs as so many guesses.
constexpr double kBelief = 4;
// Where there were more, all count half, so that the last ones tell.
constexpr double kMost = 64;
constexpr double kNewShare = 1.0 / 16;  // of one step's gain in the mean
constexpr std::array<double, kOwnGrades> kOwnRates = {0.25, 0.4, 0.55,
                                                      0.7,  0.8, 0.9};

double RateBeforehand(int32_t grade) {
  if (grade < kNgramLevels) return (grade + 0.5) / kNgramLevels;
  if (grade < kFirstDraftGrade) return kOwnRates[grade - kNgramLevels];
  return (grade - kFirstDraftGrade + 0.5) / kDraftGrades;
}

}  // namespace

int32_t OwnGrade(int64_t same_ids) {
  constexpr std::array<int64_t, kOwnGrades> kFrom = {1, 5, 8, 12, 20, 40};
  int32_t grade = 0;
  while (grade + 1 < kOwnGrades && same_ids >= kFrom[grade + 1]) ++grade;
  return kNgramLevels + grade;
}

int32_t DraftGrade(double probability) {
  return kFirstDraftGrade +
         std::min(static_cast<int32_t>(probability * kDraftGrades),
                  kDraftGrades - 1);
}

GuessRates::GuessRates() {
  for (int32_t grade = 0; grade < kGrades; ++grade) {
    rates_[grade] = {RateBeforehand(grade) * kBelief, kBelief};
  }
  draft_ = {kBelief / 2, kBelief};
}

void GuessRates::Counts::Add(bool was_right) {
  right += was_right ? 1 : 0;
  all += 1;
  if (all <= kMost) return;
  right /= 2;
  all /= 2;
}

void GuessRates::Note(int32_t grade, bool right) {
  rates_[grade].Add(right);
  if (grade >= kFirstDraftGrade) draft_.Add(right);
}

void GuessRates::NoteGain(int64_t right) {
  gain_ += kNewShare * (static_cast<double>(right) - gain_);
}

}  // namespace txl
