#pragma once

// Gives turns the slots in which their sessions live. It moves sessions between
// slots and state images, so that a turn finds its session's rows in its slot,
// and so that the session survives the turn however that ends. What a turn gets
// is decided by slot_policy.h; who lives where is known to slot_table.h.
//
// A turn claims a slot, enters it, and leaves it:
//
//   SlotCandidates candidates = slots.CandidatesFor(lease);
//   TurnSlot slot = slots.Claim(ChooseSlot(candidates, min_idle), lease, rows);
//   if (!slot.ready()) ...                     // later; other turns go on
//   absl::Status status = slots.Enter(slot, lease);
//   ...                                        // rows of slot.index in steps
//   slots.Committed(slot);                     // whenever the session moved on
//   slots.Leave(slot, lease, intact, now);     // before the lease is released

#include <cstdint>
#include <future>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/engine/step_runner.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/slot_policy.h"
#include "server/scheduler/slot_table.h"
#include "server/session/session_store.h"

namespace txl {

// A turn's slot, from the claim until the turn leaves it.
struct TurnSlot {
  int32_t index = -1;  // none: the turn runs no rows
  SlotChoice::Kind claimed_as = SlotChoice::Kind::kWait;
  // Until it is entered: the image that has to be safe before, of the session
  // that moves out or of the turn's own. Invalid: nothing to save.
  std::future<absl::StatusOr<StateImage>> save;

  // From then on. What the slot holds is not the session's state yet: so many
  // of the session's last tokens have to be fed again, or all of them; 0: none.
  int64_t rebuild_ids = 0;
  // Valid when the state came from an image: its outcome is known as soon as a
  // later step with a row of this slot is collected.
  std::future<absl::Status> import;
  bool import_failed = false;
  int64_t rows_to_derive = 0;  // left to plan, before the turn's own rows
  int64_t rows_underived = 0;  // those and the ones that have not come back
  absl::Duration entered;      // Clock::Monotonic

  // Whether the turn can enter without waiting.
  bool ready() const;
  // Whether the state's image is still on its way in.
  bool arriving() const;
};

// Owned by the scheduler's loop; not thread-safe.
class SessionSlots {
 public:
  SessionSlots(StepRunner* runner, SessionStore* store, Metrics* metrics,
               Clock* clock);

  // Frees the slots of sessions that have ended.
  void DropEnded();
  // The slots that the turn of `lease` may get; `parked` is left to the caller.
  SlotCandidates CandidatesFor(const SessionLease& lease) const;

  // Begins to carry out `choice` (kResident, kFree or kEvict) for the session
  // of `lease`, whose turn writes up to `rows_before_commit` rows past the
  // committed ones: where that is more than the ring has to spare, the state is
  // saved as an image first. Does not wait; nobody else gets the slot. A state
  // for which there is no memory is not saved: the session's next turn, or this
  // one should it break off, feeds its last tokens again.
  TurnSlot Claim(const SlotChoice& choice, const SessionLease& lease,
                 int64_t rows_before_commit);
  // Carries it out. Waits for the device unless the slot is ready. On error
  // (STEP_FAILED) the claim is dropped and every session is as it was.
  absl::Status Enter(TurnSlot& slot, const SessionLease& lease);
  // Instead of Enter: the turn does not come. Every session is as it was.
  void DropClaim(const TurnSlot& slot);
  // The session has moved on: its image, if any, is out of date.
  void Committed(const TurnSlot& slot);
  // The turn ends, or gives its slot up; `lease` still holds the session, which
  // counts as idle from `last_use` on. `intact`: the slot's rows are the
  // session's own; else it is emptied (and its image is the session's state, if
  // it has one).
  void Leave(const TurnSlot& slot, const SessionLease& lease, bool intact,
             absl::Duration last_use);
  // The same of a turn that has saved the state: the slot is free then.
  void LeaveEmpty(const TurnSlot& slot, const SessionLease& lease,
                  absl::Duration last_use);
  // The session's image cannot be read: the next turn rebuilds the state.
  void DropBadImage(const SessionLease& lease);

  // Slots without a session, for a turn that has a slot: at most `count` free
  // ones, nobody else's until they are given back.
  int64_t free_slots() const { return table_.free(); }
  std::vector<int32_t> TakeFree(int64_t count);
  void GiveBack(const std::vector<int32_t>& slots);

  const SlotTable& table() const { return table_; }

 private:
  absl::Status Save(TurnSlot& slot);
  void MoveOut(int32_t slot);
  void MoveIn(TurnSlot& slot, const SessionLease& lease);
  void PublishUse();

  StepRunner* const runner_;
  SessionStore* const store_;
  Metrics* const metrics_;
  Clock* const clock_;
  SlotTable table_;
};

}  // namespace txl
