#include "server/scheduler/guesser.h"

#include <algorithm>
#include <cstddef>

#include "model/text/ngram_table.h"

namespace txl {

Guesser::Guesser(const NgramTable* table, GuessRates* of_all)
    : table_(table), of_all_(of_all), rates_(*of_all) {}

absl::Span<const int32_t> Guesser::Guess(const TokenSequence& ids,
                                         const GuessLimits& limits) {
  guesses_.clear();
  grades_.clear();
  given_ = next_ = 0;
  ids_ = &ids;
  limits_ = limits;
  chance_ = 1;
  if (table_ != nullptr) recent_ = ids.Last(table_->order());
  match_ = own_.Find(ids);
  // The last one that was taken was given, too.
  while (given_ == guesses_.size() &&
         static_cast<int64_t>(given_) <= limits_.most) {
    const Candidate best = Best();
    if (best.grade < 0) break;
    Take(best);
  }
  if (guesses_.empty()) End();
  return absl::MakeConstSpan(guesses_).first(given_);
}

Guesser::Candidate Guesser::Best() const {
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

namespace {

// A guess has to pay so many times its cost: chances and costs are estimates.
constexpr double kMargin = 1.3;
// Where nothing is known: the likely ones show what they cost.
constexpr double kUnknownFloor = 0.5;
// What the step that could have been planned meanwhile is worth.
constexpr double kLeastGain = 0.2;

}  // namespace

double GuessFloor(const StepCost& cost, int64_t streams) {
  if (!cost.known()) return kUnknownFloor;
  const double of_token =
      cost.Seconds(streams, 0) / static_cast<double>(streams);
  if (of_token <= 0) return kUnknownFloor;
  return kMargin * cost.OfGuess() / of_token;
}

bool WorthGuessing(double floor, double gain) {
  return floor < 1 && gain >= kLeastGain;
}

int64_t MostGuesses(const GuessRoom& room) {
  return std::max<int64_t>(
      std::min({room.wanted, room.rows, room.spare_rows - 1, room.tokens_left,
                room.events_left}),
      0);
}

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
  return kOwnRates[grade - kNgramLevels];
}

}  // namespace

int32_t OwnGrade(int64_t same_ids) {
  constexpr std::array<int64_t, kOwnGrades> kFrom = {1, 5, 8, 12, 20, 40};
  int32_t grade = 0;
  while (grade + 1 < kOwnGrades && same_ids >= kFrom[grade + 1]) ++grade;
  return kNgramLevels + grade;
}

GuessRates::GuessRates() {
  for (int32_t grade = 0; grade < kGrades; ++grade) {
    rates_[grade] = {RateBeforehand(grade) * kBelief, kBelief};
  }
}

void GuessRates::Counts::Add(bool was_right) {
  right += was_right ? 1 : 0;
  all += 1;
  if (all <= kMost) return;
  right /= 2;
  all /= 2;
}

void GuessRates::Note(int32_t grade, bool right) { rates_[grade].Add(right); }

void GuessRates::NoteGain(int64_t right) {
  gain_ += kNewShare * (static_cast<double>(right) - gain_);
}

namespace {

// Of the `length` ids before `end`.
size_t PlaceOf(const TokenSequence& ids, int64_t end, int64_t length,
               size_t places) {
  uint64_t hash = 0;
  for (int64_t i = 1; i <= length; ++i) {
    hash = ExtendNgramHash(hash, ids[end - i]);
  }
  return hash % places;
}

}  // namespace

void OwnNgrams::Update(const TokenSequence& ids) {
  if (first_ < 0) {
    first_ = std::max<int64_t>(ids.size() - kOldest, 0);
    noted_ = first_;
  }
  for (; noted_ < ids.size(); ++noted_) {
    const auto place = static_cast<uint32_t>(noted_ - first_ + 1);
    if (noted_ >= kShort) {
      short_[PlaceOf(ids, noted_, kShort, kPlaces)] = place;
    }
    if (noted_ >= kLong) long_[PlaceOf(ids, noted_, kLong, kPlaces)] = place;
  }
}

std::optional<OwnNgrams::Match> OwnNgrams::Find(const TokenSequence& ids) {
  Update(ids);
  const std::optional<Match> match = FindIn(long_, kLong, ids);
  return match.has_value() ? match : FindIn(short_, kShort, ids);
}

std::optional<OwnNgrams::Match> OwnNgrams::FindIn(
    const Places& places, int64_t length, const TokenSequence& ids) const {
  const int64_t end = ids.size();
  if (end < length) return std::nullopt;
  const uint32_t place = places[PlaceOf(ids, end, length, kPlaces)];
  if (place == 0) return std::nullopt;
  Match match = {.next = first_ + place - 1};
  const int64_t most = std::min(match.next, kLongestMatch);
  while (match.same_ids < most && ids[match.next - 1 - match.same_ids] ==
                                      ids[end - 1 - match.same_ids]) {
    ++match.same_ids;
  }
  // Another context lies at the same place.
  if (match.same_ids < length) return std::nullopt;
  return match;
}

namespace {

// A stream that does not guess looks at what it would have guessed at one of
// so many tokens.
constexpr int64_t kAsideInterval = 8;

}  // namespace

bool StreamGuesses::Weigh(absl::Span<const uint64_t> turns) {
  waits_ = false;
  if (turns.empty()) return false;
  const auto count = static_cast<int64_t>(turns.size());
  floor_ = GuessFloor(cost_, count);
  if (floor_ >= 1) return false;
  double gain = 0;
  for (const uint64_t turn : turns) {
    gain += guessers_.try_emplace(turn, table_, &rates_).first->second.gain();
  }
  waits_ = WorthGuessing(floor_, gain / static_cast<double>(count));
  return waits_;
}

absl::Span<const int32_t> StreamGuesses::Guess(uint64_t turn,
                                               const TokenSequence& ids,
                                               int64_t most) {
  return guessers_.at(turn).Guess(ids, {most, floor_});
}

void StreamGuesses::NoteStep(const StepShape& shape, double seconds) {
  if (!on() || !shape.streams || shape.prompts) return;
  cost_.Note(shape.turns, shape.guesses, seconds);
}

void StreamGuesses::Saw(uint64_t turn, int32_t id) {
  const auto found = guessers_.find(turn);
  if (found != guessers_.end()) found->second.Saw(id);
}

void StreamGuesses::LookAside(uint64_t turn, const TokenSequence& ids,
                              int64_t generated) {
  if (waits_ || floor_ >= 1 || generated % kAsideInterval != 0) return;
  const auto found = guessers_.find(turn);
  if (found == guessers_.end() || found->second.waits()) return;
  found->second.Guess(ids, {most_, floor_});
}

GuessCounts CountGuesses(absl::Span<const uint64_t> owners,
                         absl::Span<const RowKind> kinds,
                         const StepResult& result) {
  GuessCounts counts;
  int64_t of_stream = 0;
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const bool guess =
        i > 0 && owners[i - 1] == owners[i] && kinds[i - 1] == RowKind::kDecode;
    if (!guess) {
      of_stream = 0;
      continue;
    }
    ++counts.guessed;
    const RowResult& row = result.rows[i];
    if (!row.status.ok() || row.rejected) continue;
    ++counts.accepted;
    counts.steps_saved = std::max(counts.steps_saved, ++of_stream);
  }
  return counts;
}

}  // namespace txl
