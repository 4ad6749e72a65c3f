#include "server/scheduler/stream_guesses.h"

#include <algorithm>
#include <cstddef>

namespace txl {
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
