#pragma once

// Which rows score the alternatives of a kAlternatives turn, and where. Pure:
// no device, no clock.
//
// Let P be the position of the last id before the alternatives. Row j of an
// alternative stands at position P + j, feeds the id before its token j and is
// asked for the probability of that token. Alternatives are taken in
// lexicographic order, so that one begins as far like the one before it as any
// does: its rows begin where the two part, and overwrite the rest of the other.
//
// A lane is a slot that holds the rows before P. Each runs a share of the order
// of its own, so that rows of several alternatives stand in one step. A ring
// has `spare_rows` rows to overwrite: behind a longer alternative a lane is
// cleared and fed the ids before P again.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "server/engine/step_runner.h"

namespace txl {

// Lanes that pay: each has at least a few rows for what making it costs, and
// no more rows can be run than `rows_per_step` in a step. `free_slots` are
// those beside the one that the turn has; the result, >= 1, counts that one.
int64_t UsefulLanes(int64_t free_slots, int64_t alternatives, int64_t rows,
                    int64_t rows_per_step);

struct ScoringLanesOptions {
  // The ids before the alternatives, as many of the last ones as a state
  // depends on; empty: the alternatives begin their session.
  std::vector<int32_t> before;
  int64_t root = -1;  // P, or -1
  // Of a model with beat positions: the ids of the session before those.
  std::optional<BeatCounter> counter;
  int64_t spare_rows = 0;
  int32_t slot = 0;  // of the first lane
};

class ScoringLanes {
 public:
  // `alternatives` outlives it; none is empty.
  ScoringLanes(const std::vector<std::vector<int32_t>>* alternatives,
               ScoringLanesOptions options);

  // Rows that could stand in the next step.
  int64_t rows_now() const;
  // Rows, at most, of alternatives that no lane has begun, and how many those
  // are.
  int64_t rows_waiting() const;
  int64_t alternatives_waiting() const;
  int64_t lanes() const { return static_cast<int64_t>(lanes_.size()); }
  // Whether a copy of the first lane's slot would be a lane.
  bool may_copy() const;

  // Adds lanes in `slots`, copies of the first lane's slot, and divides again
  // what waits. REQUIRES: may_copy.
  void AddLanes(const std::vector<int32_t>& slots);
  // Slots of lanes that have nothing to do any more or, with `all`, that are
  // between two alternatives; never the first one's. They stop being lanes.
  std::vector<int32_t> TakeSlots(bool all);
  // Every slot but the first one's.
  std::vector<int32_t> slots() const;

  // Appends `count` rows at most, evenly from all lanes, and returns how many;
  // slots in `clear` are to be cleared before they are run.
  int64_t PlanRows(int64_t count, std::vector<StepRow>& rows,
                   std::vector<int32_t>& clear);
  // The result of the next planned kScore row, in the order of planning.
  void Collect(float logprob);

  // Whether the first lane's slot was cleared.
  bool cleared() const { return cleared_; }
  // End of the positions that were written in the first lane's slot.
  int64_t written_end() const { return root_ + written_; }

  // Log-probabilities of every alternative's tokens, in the order given; absent
  // for a token without context. REQUIRES: everything is planned and collected.
  std::vector<std::vector<std::optional<float>>> TakeLogprobs();

 private:
  struct Share {  // of the order
    int64_t begin = 0;
    int64_t end = 0;
  };
  struct Lane {
    int32_t slot = 0;
    Share share;               // left to begin
    int64_t alternative = -1;  // of the order, begun last
    int64_t row = 0;           // next of it
    int64_t rows = 0;          // its end
    int64_t again = 0;         // rows before P that are to be fed again
    int64_t written = 0;       // rows j < written have been
    bool begun = false;        // there was an alternative in this lane
    bool clear = false;        // before its next row
    // Of the alternative's ids, where ticks are counted.
    std::vector<int32_t> ticks;

    int64_t left() const { return again + rows - row; }
  };
  struct Planned {
    int64_t alternative = 0;  // of the order
    int64_t row = 0;
  };

  const std::vector<int32_t>& Ids(int64_t k) const;
  int64_t RowsOf(const Share& share) const;
  int64_t first_row() const { return before_.empty() ? 1 : 0; }
  // Gives a lane without rows its next alternative that has some.
  void Advance(Lane& lane);
  void Begin(Lane& lane, int64_t k);
  void PlanRow(Lane& lane, std::vector<StepRow>& rows);

  const std::vector<std::vector<int32_t>>* const alternatives_;
  const std::vector<int32_t> before_;
  // Behind the ids before P + 1, and what it said before each of them.
  std::optional<BeatCounter> counter_;
  std::vector<int32_t> ticks_before_;
  const int64_t root_;
  const int64_t spare_rows_;
  std::vector<int64_t> order_;
  std::vector<int64_t> shared_;  // ids that one has in common with the former
  std::vector<int64_t> start_;   // first row that was run for it
  std::vector<std::vector<std::optional<float>>> logprobs_;  // in order_
  std::vector<Lane> lanes_;  // the first one stays
  std::deque<Share> waiting_;
  std::deque<Planned> planned_;
  int64_t written_ = 0;  // by the first lane, ever
  bool cleared_ = false;
};

}  // namespace txl
