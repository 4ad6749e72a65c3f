#include "server/scheduler/guesser.h"

#include <algorithm>

namespace txl {
namespace {

// After so many tokens without it the draft is asked, worth it or not, so that
// what is known of it does not grow old; the first time sooner.
constexpr int64_t kDraftSilence = 256;
constexpr int64_t kFirstDraft = 64;

}  // namespace

Guesser::Guesser(const NgramTable* table, GuessRates* of_all)
    : table_(table),
      of_all_(of_all),
      rates_(*of_all),
      since_draft_(kDraftSilence - kFirstDraft) {}

void Guesser::Begin(const TokenSequence& ids, const GuessLimits& limits) {
  guesses_.clear();
  grades_.clear();
  given_ = next_ = 0;
  ids_ = &ids;
  limits_ = limits;
  chance_ = 1;
  wants_draft_ = false;
  if (table_ != nullptr) recent_ = ids.Last(table_->order());
  match_ = own_.Find(ids);
  GoOn();
}

void Guesser::GoOn() {
  // The last one that was taken was given, too.
  while (given_ == guesses_.size() &&
         static_cast<int64_t>(given_) <= limits_.most) {
    const Candidate at_hand = AtHand();
    wants_draft_ = IsDraftWorth(at_hand);
    if (wants_draft_) return;
    if (at_hand.grade < 0) break;
    Take(at_hand);
  }
  if (guesses_.empty()) End();
}

bool Guesser::IsDraftWorth(const Candidate& at_hand) const {
  if (limits_.draft_floor == std::numeric_limits<double>::infinity() ||
      static_cast<int64_t>(given_) >= limits_.most) {
    return false;
  }
  if (since_draft_ >= kDraftSilence) return true;
  const double rate = rates_.draft_rate();
  return rate > at_hand.rate && chance_ * rate >= limits_.draft_floor;
}

void Guesser::Hear(std::optional<DraftGuess> guess) {
  wants_draft_ = false;
  since_draft_ = 0;
  Candidate best = AtHand();
  if (guess.has_value()) {
    const int32_t grade = DraftGrade(guess->probability);
    const double rate = rates_.Rate(grade);
    if (rate > best.rate) best = {guess->id, grade, rate};
  }
  if (best.grade >= 0) {
    Take(best);
    GoOn();
  } else if (guesses_.empty()) {
    End();
  }
}

Guesser::Candidate Guesser::AtHand() const {
  Candidate best;
  if (table_ != nullptr) {
    const std::optional<NgramGuess> guess = table_->Next(recent_);
    if (guess.has_value()) {
      best = {guess->id, guess->level, rates_.Rate(guess->level)};
    }
  }
  if (!match_.has_value() || match_->next >= ids_->size()) return best;
  const int32_t grade = OwnGrade(match_->same_ids);
  const double rate = rates_.Rate(grade);
  if (rate > best.rate) best = {(*ids_)[match_->next], grade, rate};
  return best;
}

void Guesser::Take(const Candidate& guess) {
  chance_ *= guess.rate;
  const bool given =
      chance_ >= limits_.floor && static_cast<int64_t>(given_) < limits_.most;
  guesses_.push_back(guess.id);
  grades_.push_back(guess.grade);
  if (table_ != nullptr) recent_.push_back(guess.id);
  if (given) ++given_;
  if (match_.has_value() && match_->next < ids_->size() &&
      (*ids_)[match_->next] == guess.id) {
    ++match_->next;
    ++match_->same_ids;
  } else {
    match_.reset();
  }
}

void Guesser::Saw(int32_t id) {
  ++since_draft_;
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
