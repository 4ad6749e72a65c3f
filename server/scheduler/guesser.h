#pragma once

// Guesses a running turn's next tokens, and learns from what they turned out to
// be.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "model/text/ngram_table.h"
#include "server/scheduler/draft.h"
#include "server/scheduler/guess_rates.h"
#include "server/scheduler/own_ngrams.h"
#include "server/session/token_sequence.h"

namespace txl {

struct GuessLimits {
  int64_t most = 0;  // guesses
  // The least probability that a guess and all before it are right.
  double floor = 0;
  // The same for asking the draft for one; infinite: there is no draft.
  double draft_floor = std::numeric_limits<double>::infinity();
};

// Takes some 10 KiB. Thread-compatible. The order of calls:
//
//   guesser.Begin(ids, limits);
//   while (guesser.WantsDraft()) guesser.Hear(draft's guess behind guesses());
//   feed(guesser.given());
//   guesser.Saw(id);  // what followed, token by token
class Guesser {
 public:
  // `table`, which may be null, and `of_all` outlive it: what the turns so far
  // have shown is where this one begins, and it is told what this one shows.
  Guesser(const NgramTable* table, GuessRates* of_all);

  // Begins guesses of what follows `ids`, which stay as they are until the last
  // one is made. The surest of the session's own ids, the table and the draft
  // gives each; the next one below the floor is looked at too, and kept to
  // learn from. It stands still where the draft's is wanted.
  void Begin(const TokenSequence& ids, const GuessLimits& limits);
  bool WantsDraft() const { return wants_draft_; }
  // Goes on with the draft's guess; nothing: it has none. REQUIRES: WantsDraft.
  void Hear(std::optional<DraftGuess> guess);

  // What was guessed, the first one first, with what is only looked at, and
  // what is worth its rows. Valid until the next call that is not const.
  absl::Span<const int32_t> guesses() const { return guesses_; }
  absl::Span<const int32_t> given() const {
    return absl::MakeConstSpan(guesses_).first(given_);
  }

  // What followed, token by token.
  void Saw(int32_t id);

  // Guesses whose fate is not known.
  bool waits() const { return next_ < grades_.size(); }
  // Tokens that the guesses of a step are worth: right ones of those given, the
  // mean of the last steps.
  double gain() const { return rates_.gain(); }

 private:
  struct Candidate {
    int32_t id = 0;
    int32_t grade = -1;  // none
    double rate = 0;
  };
  // Takes guesses that cost nothing to make, until the draft is wanted or there
  // are enough.
  void GoOn();
  // Of the table and the session's own ids.
  Candidate AtHand() const;
  bool IsDraftWorth(const Candidate& at_hand) const;
  void Take(const Candidate& guess);
  void End();

  const NgramTable* const table_;
  GuessRates* const of_all_;
  GuessRates rates_;
  OwnNgrams own_;

  // The guesses that are being made.
  const TokenSequence* ids_ = nullptr;
  GuessLimits limits_;
  std::optional<OwnNgrams::Match> match_;
  double chance_ = 1;            // that all of them are right
  std::vector<int32_t> recent_;  // what the table is asked behind
  bool wants_draft_ = false;
  int64_t since_draft_;  // tokens

  // The last ones, with the one that is only looked at.
  std::vector<int32_t> guesses_;
  std::vector<int32_t> grades_;
  size_t given_ = 0;  // of them, worth their rows
  size_t next_ = 0;   // the first whose fate is not known
};

}  // namespace txl
