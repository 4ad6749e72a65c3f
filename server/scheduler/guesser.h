#pragma once

// Guesses the next tokens of running turns, and learns from what they turned
// out to be: how often guesses are right, one turn's guesses, and when to guess
// for the streams of a step.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "model/text/ngram_table.h"
#include "server/engine/step_runner.h"
#include "server/scheduler/step_ledger.h"
#include "server/session/token_sequence.h"

namespace txl {

// How often guesses of a grade are right, and what guesses bring. A grade says
// where a guess is from and how sure its source is of it.

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

  // Notes how many guesses of one step were right.
  void NoteGain(int64_t right);
  // Mean of the last gains. It begins high enough for a trial.
  double gain() const { return gain_; }

 private:
  struct Counts {
    double right = 0;
    double all = 0;
    double right_share() const { return right / all; }
    void Add(bool was_right);
  };
  std::array<Counts, kGrades> rates_;
  double gain_ = 0.5;
};

// Where a session's last ids have stood in it before. Takes kBytes for a turn
// that runs, however long its session is; the ids themselves stay the
// session's.

// Thread-compatible.
class OwnNgrams {
 public:
  struct Match {
    int64_t next = 0;      // index of the id that followed
    int64_t same_ids = 0;  // before it: the session's last so many, >= kShort
  };

  static constexpr int64_t kShort = 3;
  static constexpr int64_t kLong = 8;
  static constexpr int64_t kLongestMatch = 64;  // more are not looked at
  static constexpr int64_t kOldest = 4096;      // ids that a turn finds there

  // The latest place before the end that a long or else a short end of `ids`
  // has had. `ids` is the same sequence as in the calls before, grown.
  std::optional<Match> Find(const TokenSequence& ids);

 private:
  static constexpr size_t kPlaces = 1024;
  // What followed, counted from first_ + 1; 0: nothing.
  using Places = std::array<uint32_t, kPlaces>;

  void Update(const TokenSequence& ids);
  std::optional<Match> FindIn(const Places& places, int64_t length,
                              const TokenSequence& ids) const;

  int64_t first_ = -1;
  int64_t noted_ = 0;  // ids before this one are in the places
  Places short_{}, long_{};
};

struct GuessLimits {
  int64_t most = 0;  // guesses
  // The least probability that a guess and all before it are right.
  double floor = 0;
};

// Takes about 10 KiB. Thread-compatible. The order of calls:
//
//   feed(guesser.Guess(ids, limits));
//   guesser.Saw(id);  // what followed, token by token
class Guesser {
 public:
  // `table`, which may be null, and `of_all` outlive it: what the turns so far
  // have shown is where this one begins, and it is told what this one shows.
  Guesser(const NgramTable* table, GuessRates* of_all);

  // What follows `ids`, the first one first, as far as it is worth its rows.
  // The surer of the session's own ids and the table gives each; the next one
  // below the floor is looked at too, and kept to learn from. Valid until the
  // next call that is not const.
  absl::Span<const int32_t> Guess(const TokenSequence& ids,
                                  const GuessLimits& limits);

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
  // The better candidate of the table's and that of the session's own ids.
  Candidate Best() const;
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

  // The last ones, with the one that is only looked at.
  std::vector<int32_t> guesses_;
  std::vector<int32_t> grades_;
  size_t given_ = 0;  // of them, worth their rows
  size_t next_ = 0;   // the first whose fate is not known
};

// Whether tokens are guessed ahead of streams, and which guesses are worth
// their rows: pure functions.
//
// A sampled token is a function of distribution, parameters, seed and position,
// and on a runner that verifies guesses a row's bits depend on no cut. So a
// stream's next tokens, guessed, can be fed as a prompt is; each row samples,
// and as far as the samples are the guesses they are the tokens that the stream
// would have had one step at a time (speculative decoding, arXiv:2211.17192,
// but exact to the bit, and with guesses from what texts repeat:
// arXiv:2304.04487).

// The least probability of being accepted with which a guess is worth its row
// among so many streams: what it costs beside what a token costs without it,
// with a margin. 1 or more: none is. REQUIRES: streams >= 1.
double GuessFloor(const StepCost& cost, int64_t streams);

// Whether streams do better to wait for a step's tokens, and guess behind them,
// than to be planned one step ahead without knowing them. `gain`: tokens that a
// step's guesses give a stream, the mean over all streams.
bool WorthGuessing(double floor, double gain);

// Most guesses of one stream in a step.
struct GuessRoom {
  int64_t wanted = 0;       // by the settings
  int64_t rows = 0;         // that the step has left
  int64_t spare_rows = 0;   // of a slot, the stream's own row included
  int64_t tokens_left = 0;  // that the turn may sample behind that row's
  int64_t events_left = 0;  // that its sink takes behind that row's
};
int64_t MostGuesses(const GuessRoom& room);

// What is guessed ahead of the streams of a step, and whether that is worth the
// wait for the step's tokens. It has the guessers of all turns, and what steps
// have shown of what guesses cost.
//
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
