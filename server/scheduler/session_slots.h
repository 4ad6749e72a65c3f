#pragma once

// Gives turns the slots in which their sessions live. It moves sessions between
// slots and state images, so that a turn finds its session's rows in its slot,
// and so that the session survives the turn however that ends. What a turn gets
// is decided by ChooseSlot; SlotTable knows which session has which slot.
//
// A turn claims a slot, enters it, and leaves it:
//
//   SlotCandidates candidates = slots.CandidatesFor(lease);
//   TurnSlot slot = slots.Claim(ChooseSlot(candidates, min_idle), lease, rows);
//   if (!slot.ready()) ...                     // later; other turns go on
//   absl::Status status = slots.AwaitSave(slot);
//   if (status.ok()) slots.Enter(slot, lease);
//   ...                                        // rows of slot.index in steps
//   slots.Committed(slot);                     // whenever the session moved on
//   slots.Leave(slot, lease, intact, now);     // before the lease is released

#include <cstdint>
#include <future>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/engine/step_runner.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/prefix_cache.h"
#include "server/session/session_store.h"

namespace txl {

// Which slot a turn gets: a pure function of the few slots that may serve it.

// What SlotTable knows of the slots for one turn: the best of each kind, so
// that a choice costs the same however many slots there are.
struct SlotCandidates {
  struct Own {
    int32_t slot = -1;
    bool leaving = false;  // the session moves out; another will come
  };
  struct Idle {
    int32_t slot = -1;
    absl::Duration idle;  // since the last turn of the session there
  };
  std::optional<Own> own;            // where the turn's session lives
  std::optional<int32_t> free;       // an empty one
  std::optional<Idle> idle_longest;  // of the sessions without a turn
  bool running = false;              // a turn works in some slot
  // The turn that has waited longest for its reader.
  std::optional<Idle> parked;
};

struct SlotChoice {
  enum class Kind {
    kResident,  // the session's own slot
    kFree,      // an empty one
    kEvict,     // move the session that lives there out, then take it
    kYield,     // the parked turn there gives it up, then as kEvict
    kWait,      // nothing now: a turn will leave one, or its own is moving out
    kRefuse,    // only sessions that are idle for less than min_idle
  };
  Kind kind = Kind::kWait;
  int32_t slot = -1;
};

// Own slot before a free one before the one idle longest before the one parked
// longest. A session that is idle, or whose turn is parked, for less than
// `min_idle` is never moved out, nor one whose turn has something to do; one
// that moves out waits until it has.
SlotChoice ChooseSlot(const SlotCandidates& slots, absl::Duration min_idle);

// Which session lives in which slot. Owned by the scheduler's loop; not
// thread-safe. It knows no device: the loop clears, exports and imports.
//
// Every call costs O(log slots) at most: sessions are found by key, empty
// slots and idle sessions stand in order.

class SlotTable {
 public:
  struct Entry {
    std::optional<uint64_t> key;  // of the session; none: the slot is free
    bool running = false;         // a turn works on it, or it is leaving
    bool leaving = false;         // the session moves out; another will come
    bool ended = false;           // the session ended while its turn ran
    // Rows before this position are the session's (its tokens but the last).
    int64_t rows = 0;
    // The store's image of the session equals these rows, so that nothing
    // needs to be exported.
    bool image_current = false;
    absl::Duration last_use;  // end of its last turn, Clock::Monotonic
  };

  explicit SlotTable(int32_t slots);

  int32_t slots() const { return static_cast<int32_t>(entries_.size()); }
  const Entry& at(int32_t slot) const { return entries_[slot]; }
  // Where the session lives, if it has no turn and does not move out.
  std::optional<int32_t> IdleSlotOf(uint64_t key) const;
  // The slots that a turn of session `key` may get.
  SlotCandidates CandidatesFor(uint64_t key, absl::Duration now) const;

  // A running turn of session `key` takes a free slot. REQUIRES: free, and the
  // session lives in no other one.
  void Assign(int32_t slot, uint64_t key);
  // The idle session there is worked on again, or moves out (`leaving`).
  // REQUIRES: a session without a turn.
  void Occupy(int32_t slot, bool leaving);
  // Undoes Occupy: the session stays as it was, unless it ended.
  void Vacate(int32_t slot);
  void Free(int32_t slot);
  void SetImageCurrent(int32_t slot, bool current);
  // The session is gone: its slot is free at once, or when its turn leaves.
  void EndSession(uint64_t key);
  // The turn leaves: the session stays with `rows` rows, unless it ended. It
  // counts as idle from `last_use` on.
  void Leave(int32_t slot, int64_t rows, absl::Duration last_use);

  // A running turn takes a free slot beside its session's, and gives it back.
  // REQUIRES: free() > 0.
  int32_t TakeFree();
  void GiveBack(int32_t slot) { free_.insert(slot); }

  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  std::vector<int32_t> FreeSlots() const {
    return {free_.begin(), free_.end()};
  }
  int64_t used() const {
    return static_cast<int64_t>(entries_.size()) - free();
  }

 private:
  std::vector<Entry> entries_;
  std::unordered_map<uint64_t, int32_t> slot_of_;
  std::set<int32_t> free_;
  std::set<std::pair<absl::Duration, int32_t>> idle_;  // by last_use
};

// A turn's slot, from the claim until the turn leaves it.
struct TurnSlot {
  int32_t index = -1;  // none: the turn runs no rows
  SlotChoice::Kind claimed_as = SlotChoice::Kind::kWait;
  // Until it is entered: the image that must be safe before, of the session
  // that moves out or of the turn's own. Invalid: nothing to save.
  std::future<absl::StatusOr<StateImage>> save;

  // What the turn begins with in a slot that it takes over: the slot is not
  // cleared. rows 0: nothing.
  PrefixHit taken;

  // From then on. What the slot holds is not the session's state yet: so many
  // of the session's last tokens must be fed again, or all of them; 0: none.
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
  // Whether all of it is there, and known to be.
  bool arrived() const {
    return !import.valid() && !import_failed && rows_underived == 0;
  }
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
  // saved as an image first. Does not wait; no other turn gets the slot. A
  // state for which there is no memory is not saved: the session's next turn,
  // or this one should it break off, feeds its last tokens again.
  TurnSlot Claim(const SlotChoice& choice, const SessionLease& lease,
                 int64_t rows_before_commit);
  // Saves the state that leaves the slot. Waits for the device unless the slot
  // is ready. On error (STEP_FAILED) the claim is dropped, and all sessions
  // stay unchanged.
  absl::Status AwaitSave(TurnSlot& slot);
  // Carries the claim out, after AwaitSave.
  void Enter(TurnSlot& slot, const SessionLease& lease);
  // Instead of both: the turn does not come. All sessions stay unchanged.
  void DropClaim(const TurnSlot& slot);
  // The session has moved on: its image, if any, is out of date.
  void Committed(const TurnSlot& slot);
  // The turn ends, or gives its slot up; `lease` still holds the session, which
  // counts as idle from `last_use` on. `intact`: the slot's rows are the
  // session's own; else it is emptied (and its image is the session's state, if
  // it has one).
  void Leave(const TurnSlot& slot, const SessionLease& lease, bool intact,
             absl::Duration last_use);
  // Leave for a turn that has saved the state: the slot becomes free.
  void LeaveEmpty(const TurnSlot& slot, const SessionLease& lease,
                  absl::Duration last_use);
  // The session's image cannot be read: the next turn rebuilds the state.
  void DropBadImage(const SessionLease& lease);

  // The states of sessions without a turn become images, too. They stay in
  // their slots and may have turns meanwhile: what is no longer their state is
  // not kept. False: there is nothing to save, or it is being saved.
  bool SaveIdle(uint64_t key);
  // Keeps what has arrived. How many saves have ended, well or not.
  int64_t PollSaves();
  bool saving() const { return !saves_.empty(); }
  // Waits for the device until the oldest save can be kept.
  void WaitForSave() { saves_.front().image.wait(); }

  // Slots without a session, for a turn that has a slot: at most `count` free
  // ones. No other turn gets them until they are given back.
  int64_t free_slots() const { return table_.free(); }
  std::vector<int32_t> TakeFree(int64_t count);
  void GiveBack(const std::vector<int32_t>& slots);

  const SlotTable& table() const { return table_; }

 private:
  struct IdleSave {
    uint64_t key = 0;
    int32_t slot = -1;
    int64_t rows = 0;
    std::future<absl::StatusOr<StateImage>> image;
  };

  void Keep(IdleSave& save);
  absl::Status Save(TurnSlot& slot);
  void MoveOut(int32_t slot);
  void MoveIn(TurnSlot& slot, const SessionLease& lease);
  void PublishUse();

  StepRunner* const runner_;
  SessionStore* const store_;
  Metrics* const metrics_;
  Clock* const clock_;
  SlotTable table_;
  std::vector<IdleSave> saves_;  // in the order of their exports
};

}  // namespace txl
