#pragma once

// What is guessed ahead of the streams of a step, and whether that is worth the
// wait for the step's tokens. It has the guessers of all turns, and what steps
// have shown of what guesses cost.

#include <cstdint>
#include <map>

#include "absl/types/span.h"
#include "model/text/ngram_table.h"
#include "server/engine/step_runner.h"
#include "server/scheduler/guesser.h"
#include "server/scheduler/step_ledger.h"
#include "server/session/token_sequence.h"

namespace txl {

// Not thread-safe. `turn`: any number that is its own from its first step to
// Ended. The order of calls for each step:
//
//   if (guesses.Weigh(turns_of_streams)) {
//     feed(guesses.Guess(turn, ids, most));  // of some or all of the streams
//   }
//   guesses.NoteStep(shape, seconds);        // once the step is collected
//   guesses.Saw(turn, id);                   // token by token
class StreamGuesses {
 public:
  // `most`: guesses of a stream in a step; 0: no stream guesses. `table`, which
  // may be null, outlives it.
  StreamGuesses(int64_t most, const NgramTable* table)
      : most_(most), table_(table) {}

  bool on() const { return most_ > 0; }
  int64_t most() const { return most_; }

  // Whether tokens are guessed ahead in the step of these streams. REQUIRES:
  // on.
  bool Weigh(absl::Span<const uint64_t> turns);
  // What the last Weigh said: the next step is planned when the tokens of that
  // step are known.
  bool waits() const { return waits_; }

  // What follows `ids`, the turn's, at most `most`. Valid until the turn's next
  // call. REQUIRES: waits, of one of those turns.
  absl::Span<const int32_t> Guess(uint64_t turn, const TokenSequence& ids,
                                  int64_t most);

  // A step that did not fail took so long.
  void NoteStep(const StepShape& shape, double seconds);
  // The turn's stream has its next token.
  void Saw(uint64_t turn, int32_t id);
  // The same stream goes on, with `generated` tokens so far. Now and then one
  // that does not guess looks at what it would have guessed.
  void LookAside(uint64_t turn, const TokenSequence& ids, int64_t generated);
  // Forgets the turn.
  void Ended(uint64_t turn) { guessers_.erase(turn); }

 private:
  const int64_t most_;
  const NgramTable* const table_;
  std::map<uint64_t, Guesser> guessers_;  // of turns from their first Weigh on
  bool waits_ = false;
  double floor_ = 1;  // GuessFloor of the streams that were weighed last
  StepCost cost_;
  GuessRates rates_;  // of all turns
};

// What became of the guesses of a step that did not fail: a pure function.
// `owners`, `kinds`: whose each of its rows is, and of which kind. A guess is a
// row that samples behind another of its turn.
GuessCounts CountGuesses(absl::Span<const uint64_t> owners,
                         absl::Span<const RowKind> kinds,
                         const StepResult& result);

}  // namespace txl
