#pragma once

// What running turns give to the prefix cache and take from it: which slot a
// turn begins in, what moves into it, and when a prompt's rows are copied to
// the host (prefix_cache.h, docs/design/prefix-cache.md).
//
//   int32_t slot = prefixes.Place(turn, table, &taken);  // it gets a free one
//   prefixes.Overwrite(slot);                    // unless it is taken
//   prefixes.Entered(turn, slot);
//   prefixes.Begin(sequence, slot, prefix);      // before its first row
//   prefixes.Planned(id, sequence, slot, prefix);      // after each step
//   prefixes.InputDone(sequence, slot, prefix);        // its first token came
//   prefixes.Ended(id, sequence, slot, prefix, good);  // at its end
//   prefixes.Poll(collected_end);                // before turns begin

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/memory/ring.h"
#include "model/memory/state_image.h"
#include "server/engine/step_runner.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/prefix_cache.h"
#include "server/scheduler/scheduler_options.h"
#include "server/scheduler/sequence.h"
#include "server/scheduler/session_slots.h"
#include "server/scheduler/turn.h"

namespace txl {

// Of one running turn.
struct TurnPrefix {
  // What the cache knew of the input's first ids.
  std::shared_ptr<const PrefixScores> scores;
  // Positions at which the rows are copied to the host, ascending.
  std::vector<int64_t> checkpoints;
  std::shared_ptr<const StateImage> image;  // that moves in
  // The turn waits until this older one has fed what both begin with.
  std::optional<uint64_t> leader;
  int64_t rows_of_leader = 0;
};

// Owned by the scheduler's loop; not thread-safe.
class TurnPrefixes {
 public:
  TurnPrefixes(const SchedulerOptions& options, StepRunner* runner,
               Metrics* metrics);

  bool on() const { return cache_.on(); }
  int64_t least_rows() const { return least_rows_; }

  // Of the free slots the one that the turn takes, and what it finds there.
  // REQUIRES: there is a free slot.
  int32_t Place(const Turn& turn, const SlotTable& slots,
                PrefixHit* taken) const;
  // The slot's rows are about to be those of another session of `position` ids.
  void Overwrite(int32_t slot, int64_t position);
  // The turn has entered its slot, which may hold its session, or comes back
  // to another one.
  void Entered(const Turn& turn, const TurnSlot& slot);

  // Rows that the turn would begin with, in a slot of its own.
  int64_t RowsFor(const Turn& turn) const;
  // Rows of an older turn that one could begin with, once they are fed; 0: it
  // does not share them, is less urgent or overwrites them. REQUIRES: the older
  // one has a slot.
  int64_t RowsOfLeader(const Sequence& leader, int32_t leader_slot,
                       const Turn& turn) const;

  // Another turn waits for the leader's first `rows` rows, where the two part:
  // a third prompt may part from them there, too.
  void PartsAt(int64_t rows, const Sequence& leader, TurnPrefix& prefix) const;

  // Before the turn's first row is planned: what the cache has comes into its
  // slot.
  void Begin(Sequence& sequence, TurnSlot& slot, TurnPrefix& prefix);
  // Instead: with what RowsOfLeader said of a leader that has fed them since.
  // False: by now they would not serve.
  bool BeginBehind(const Sequence& leader, int32_t leader_slot,
                   Sequence& sequence, const TurnSlot& slot,
                   TurnPrefix& prefix);

  // Rows of the turn were submitted.
  void Planned(uint64_t id, const Sequence& sequence, const TurnSlot& slot,
               TurnPrefix& prefix);
  // The turn's first token has come, so that its prompt's rows are whole.
  void InputDone(const Sequence& sequence, const TurnSlot& slot,
                 const TurnPrefix& prefix);
  // `good`: it ended well, and the slot holds the rows of what it fed. The
  // lease is still held.
  void Ended(uint64_t id, const Sequence& sequence, const TurnSlot& slot,
             const TurnPrefix& prefix, bool good);
  // The image could not be read.
  void DropImage(const TurnPrefix& prefix);
  void DropTenant(absl::string_view tenant);

  // Takes images that have come to the host. `collected_end(id)`: of a running
  // turn; rows behind it may still fail.
  void Poll(absl::FunctionRef<int64_t(uint64_t id)> collected_end);

 private:
  // Which positions' rows a slot can have, since all of it was overwritten.
  struct SlotExtent {
    int64_t first = 0;  // -M where rows stand before position 0
    // The end of what was ever written, or will be by the turn that is there.
    // What those rows overwrote stays lost when a turn begins before them.
    int64_t written = 0;
    int64_t written_before = 0;  // the turn that is there
  };
  // On its way to the host.
  struct Leaving {
    std::optional<uint64_t> turn;  // that may still fail
    bool scored = false;           // its end tells the ids' scores
    KeptPrompt prompt;
    std::future<absl::StatusOr<StateImage>> image;
  };

  // REQUIRES: the turn outlives the query.
  PrefixQuery QueryFor(const Turn& turn) const;
  static KeptPrompt PromptOf(const Sequence& sequence,
                             absl::Span<const int32_t> ids, int64_t rows);
  // What the slot of a turn that ended well holds, if it serves others.
  static std::optional<KeptPrompt> PromptAtEnd(const Sequence& sequence);
  void KeepAsImage(int32_t slot);
  // Rows that must be fed for an image at the position to be worth its copy.
  int64_t LeastRowsOfImage(int64_t position) const;
  bool IsWorthAnImage(const KeptPrompt& prompt);
  void CopyExtent(int32_t from, int32_t to);
  // KeptPrompt::shortest of what the slot of a turn holds that prompts.
  int64_t ShortestOfLeader(const Sequence& leader, int32_t slot) const;
  void CountLookup(int64_t rows);
  bool IsFree(int32_t slot, const SlotTable& slots) const;
  // Whether a slot that was written up to `end` still has all rows from 0 on,
  // and nothing that they would need before them.
  bool IsDivisible(int64_t end) const {
    return !info_.identity.zero_start && end <= info_.mem_len;
  }
  // KeptPrompt::shortest of what a slot holds.
  int64_t Shortest(const SlotExtent& extent) const;
  void SetCheckpoints(const Sequence& sequence, int32_t slot, int64_t shared,
                      TurnPrefix& prefix) const;
  void Export(std::optional<uint64_t> turn, bool scored, int32_t slot,
              KeptPrompt prompt);
  // What the cache holds now.
  void Report(Snapshot& s) const;
  void Publish();

  const int64_t least_rows_;
  const int64_t guesses_;  // rows that a stream's step may write in vain
  StepRunner* const runner_;
  const RunnerInfo& info_;
  Metrics* const metrics_;
  const RingGeometry ring_;
  std::vector<SlotExtent> extents_;  // of slots
  PrefixCache cache_;
  std::vector<Leaving> leaving_;
};

}  // namespace txl
