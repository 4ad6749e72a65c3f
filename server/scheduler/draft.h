#pragma once

// A small model of the same vocabulary that guesses what streams sample next.
// It draws with a stream's own parameters, seed and position, so its guess is
// the stream's token wherever the two models' distributions agree (drafts:
// arXiv:2211.17192). What is wrong in it costs time, never a result.
//
// Its runner has a slot for each of the served model's, and keeps a segment
// memory of its own there. A slot is known by the ids that it was fed: guesses
// that were refused are fed over, tokens that came without the draft are caught
// up on, and where the ids are another session's, or too many are missing, the
// memory begins anew with the last ones.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/step_runner.h"
#include "server/scheduler/step_cost.h"
#include "server/session/token_sequence.h"

namespace txl {

// A stream that wants one guess more.
struct DraftAsk {
  int32_t slot = 0;                    // of the stream
  const TokenSequence* ids = nullptr;  // of its session, > 0
  absl::Span<const int32_t> guesses;   // of what follows them, so far
  SlotSampling sampling;               // of the token behind those
};

struct DraftGuess {
  int32_t id = 0;
  double probability = 0;  // by the draft's own distribution
};

// Thread-compatible.
class Draft {
 public:
  // Ids that a memory begins with, and that one step catches up on, at most.
  static constexpr int64_t kMostFed = 64;

  // `runner` outlives it, and nobody else uses it. Its slots are as many as the
  // served model's.
  explicit Draft(StepRunner* runner);

  // The next guess of each stream, in one step; nothing where that one's row
  // failed or found no room. REQUIRES: other slots each.
  std::vector<std::optional<DraftGuess>> Next(absl::Span<const DraftAsk> asks);

  // False once a whole step has failed: it guesses nothing any more.
  bool works() const { return works_; }
  // Of a step in which a stream has one row, and `guesses` are rows more.
  const StepCost& cost() const { return cost_; }

 private:
  // What a slot's memory is made of.
  struct Fed {
    int64_t end = 0;            // position behind the last id
    std::vector<int32_t> last;  // ids before `end`, the latest ones
  };

  // The position up to which the slot's memory is that of these ids; nothing
  // where it is of no use.
  std::optional<int64_t> Kept(const DraftAsk& ask) const;
  // Appends the ask's rows, `room` at most. False: there is no room.
  bool PlanRows(const DraftAsk& ask, int64_t room, std::vector<StepRow>& rows);
  void Remember(int32_t slot, absl::Span<const StepRow> rows);

  StepRunner* const runner_;
  const int64_t most_fed_;
  std::vector<Fed> slots_;
  StepCost cost_;
  bool works_ = true;
};

}  // namespace txl
