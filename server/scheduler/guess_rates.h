#pragma once

// How often guesses of a grade are right, and what guesses bring. A grade says
// where a guess is from and how sure its source is of it.

#include <array>
#include <cstdint>

#include "model/text/ngram_table.h"

namespace txl {

// Grades of the n-gram table's guesses are their levels; the session's own ids
// have theirs behind, by how many ids before the guess were the same.
inline constexpr int32_t kOwnGrades = 6;
inline constexpr int32_t kGrades = kNgramLevels + kOwnGrades;
// REQUIRES: same_ids >= 1.
int32_t OwnGrade(int64_t same_ids);

// Thread-compatible.
class GuessRates {
 public:
  GuessRates();

  void Note(int32_t grade, bool right);
  // The share of right ones among the last ones of the grade, in (0, 1);
  // before there were any, what its source says.
  double Rate(int32_t grade) const { return rates_[grade].right_share(); }

  // Of the guesses of one step so many were right.
  void NoteGain(int64_t right);
  // The mean of the last ones; beforehand as much as makes a trial.
  double gain() const { return gain_; }

 private:
  struct Counts {
    double right = 0;
    double all = 0;
    double right_share() const { return right / all; }
  };
  std::array<Counts, kGrades> rates_;
  double gain_ = 0.5;
};

}  // namespace txl
