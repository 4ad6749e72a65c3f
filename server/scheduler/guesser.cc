#include "server/scheduler/guesser.h"

#include <algorithm>
#include <optional>

namespace txl {

Guesser::Guesser(const NgramTable* table, GuessRates* of_all)
    : table_(table), of_all_(of_all), rates_(*of_all) {}

absl::Span<const int32_t> Guesser::Guess(const TokenSequence& ids,
                                         const GuessLimits& limits) {
  guesses_.clear();
  grades_.clear();
  given_ = next_ = 0;
  if (table_ != nullptr) recent_ = ids.Last(table_->order());
  std::optional<OwnNgrams::Match> own = own_.Find(ids);
  double chance = 1;
  while (given_ == guesses_.size() &&
         static_cast<int64_t>(given_) <= limits.most) {
    Candidate best = FromTable();
    const bool has_own = own.has_value() && own->next < ids.size();
    if (has_own) {
      const int32_t grade = OwnGrade(own->same_ids);
      const double rate = rates_.Rate(grade);
      if (rate > best.rate) best = {ids[own->next], grade, rate};
    }
    if (best.grade < 0) break;
    chance *= best.rate;
    guesses_.push_back(best.id);
    grades_.push_back(best.grade);
    recent_.push_back(best.id);
    const bool given =
        chance >= limits.floor && static_cast<int64_t>(given_) < limits.most;
    if (given) ++given_;
    if (has_own && ids[own->next] == best.id) {
      ++own->next;
      ++own->same_ids;
    } else {
      own.reset();
    }
  }
  if (guesses_.empty()) End();
  return absl::MakeConstSpan(guesses_).first(given_);
}

Guesser::Candidate Guesser::FromTable() const {
  if (table_ == nullptr) return {};
  const std::optional<NgramGuess> guess = table_->Next(recent_);
  if (!guess.has_value()) return {};
  return {guess->id, guess->level, rates_.Rate(guess->level)};
}

void Guesser::Saw(int32_t id) {
  if (!waits()) return;
  const bool right = guesses_[next_] == id;
  rates_.Note(grades_[next_], right);
  of_all_->Note(grades_[next_], right);
  if (right) ++next_;
  if (!right || !waits()) End();
}

void Guesser::End() {
  const auto right = static_cast<int64_t>(std::min(next_, given_));
  rates_.NoteGain(right);
  of_all_->NoteGain(right);
  next_ = grades_.size();
}

}  // namespace txl
