#pragma once

// How often guesses of a grade are right, and what guesses bring. A grade says
// where a guess is from and how sure its source is of it.

#include <array>
#include <cstdint>

#include "model/text/ngram_table.h"

namespace txl {

// Grades of the n-gram table's guesses are their levels; the session's own ids
// have theirs behind, by how many ids before the guess were the same, then a
// draft's guesses, by the probability that it gives them.
inline constexpr int32_t kOwnGrades = 6;
inline constexpr int32_t kDraftGrades = 8;
inline constexpr int32_t kFirstDraftGrade = kNgramLevels + kOwnGrades;
inline constexpr int32_t kGrades = kFirstDraftGrade + kDraftGrades;
// REQUIRES: same_ids >= 1.
int32_t OwnGrade(int64_t same_ids);
// REQUIRES: 0 <= probability <= 1.
int32_t DraftGrade(double probability);

// Thread-compatible.
class GuessRates {
 public:
  GuessRates();

  void Note(int32_t grade, bool right);
  // The share of right ones among the last ones of the grade, in (0, 1);
  // before there were any, what its source says.
  double Rate(int32_t grade) const { return rates_[grade].right_share(); }
  // Of a draft's guesses, whatever their grade.
  double draft_rate() const { return draft_.right_share(); }

  // Of the guesses of one step so many were right.
  void NoteGain(int64_t right);
  // The mean of the last ones; beforehand as much as makes a trial.
  double gain() const { return gain_; }

 private:
  struct Counts {
    double right = 0;
    double all = 0;
    double right_share() const { return right / all; }
    void Add(bool was_right);
  };
  std::array<Counts, kGrades> rates_;
  Counts draft_;
  double gain_ = 0.5;
};

}  // namespace txl
