#pragma once

// Guesses a running turn's next tokens, and learns from what they turned out to
// be.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "model/text/ngram_table.h"
#include "server/scheduler/guess_rates.h"
#include "server/scheduler/own_ngrams.h"
#include "server/session/token_sequence.h"

namespace txl {

struct GuessLimits {
  int64_t most = 0;  // guesses
  // The least probability that a guess and all before it are right.
  double floor = 0;
};

// Takes some 10 KiB. Thread-compatible.
class Guesser {
 public:
  // `table`, which may be null, and `of_all` outlive it: what the turns so far
  // have shown is where this one begins, and it is told what this one shows.
  Guesser(const NgramTable* table, GuessRates* of_all);

  // Guesses of what follows `ids`, the first one first. The better of the
  // session's own ids and the table gives each; the next one below the floor is
  // looked at too, and kept to learn from. Valid until the next call.
  absl::Span<const int32_t> Guess(const TokenSequence& ids,
                                  const GuessLimits& limits);
  // What followed, token by token.
  void Saw(int32_t id);

  // Guesses whose fate is not known.
  bool waits() const { return next_ < grades_.size(); }
  // Tokens that the guesses of a step are worth: right ones of Guess, the mean
  // of the last calls.
  double gain() const { return rates_.gain(); }

 private:
  struct Candidate {
    int32_t id = 0;
    int32_t grade = -1;  // none
    double rate = 0;
  };
  Candidate FromTable() const;
  void End();

  const NgramTable* const table_;
  GuessRates* const of_all_;
  GuessRates rates_;
  OwnNgrams own_;

  std::vector<int32_t> recent_;  // what the table is asked behind
  // The last call's guesses, with the one that is only looked at.
  std::vector<int32_t> guesses_;
  std::vector<int32_t> grades_;
  size_t given_ = 0;  // of them, returned
  size_t next_ = 0;   // the first whose fate is not known
};

}  // namespace txl
