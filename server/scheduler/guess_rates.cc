#include "server/scheduler/guess_rates.h"

namespace txl {
namespace {

// What is believed of a grade beforehand weighs as so many guesses.
constexpr double kBelief = 4;
// Where there were more, all count half, so that the last ones tell.
constexpr double kMost = 64;
constexpr double kNewShare = 1.0 / 16;  // of one step's gain in the mean
constexpr std::array<double, kOwnGrades> kOwnRates = {0.25, 0.4, 0.55,
                                                      0.7,  0.8, 0.9};

}  // namespace

int32_t OwnGrade(int64_t same_ids) {
  constexpr std::array<int64_t, kOwnGrades> kFrom = {1, 5, 8, 12, 20, 40};
  int32_t grade = 0;
  while (grade + 1 < kOwnGrades && same_ids >= kFrom[grade + 1]) ++grade;
  return kNgramLevels + grade;
}

GuessRates::GuessRates() {
  for (int32_t grade = 0; grade < kGrades; ++grade) {
    const double rate = grade < kNgramLevels ? (grade + 0.5) / kNgramLevels
                                             : kOwnRates[grade - kNgramLevels];
    rates_[grade] = {rate * kBelief, kBelief};
  }
}

void GuessRates::Note(int32_t grade, bool right) {
  Counts& counts = rates_[grade];
  counts.right += right ? 1 : 0;
  counts.all += 1;
  if (counts.all <= kMost) return;
  counts.right /= 2;
  counts.all /= 2;
}

void GuessRates::NoteGain(int64_t right) {
  gain_ += kNewShare * (static_cast<double>(right) - gain_);
}

}  // namespace txl
