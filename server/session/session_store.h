#pragma once

// All sessions of the server: ids, time-to-live, one writer at a time.
//
// A session is its token ids and the detokenizer's state. Its segment memory
// lives in a slot of the engine, else in an image that the store keeps, else
// nowhere: the session has at most one token, or its state was lost and is
// computed again from the ids. Which slot is whose, the scheduler knows.
//
// The order of calls around one turn:
//
//   SessionStore store(options, Clock::Real());
//   store.Create("verona", std::nullopt).IgnoreError();  // once
//
//   absl::StatusOr<SessionLease> lease = store.Acquire("verona");
//   if (!lease.ok()) return lease.status();     // SESSION_BUSY, ...
//   absl::Status room = lease->Reserve(10);     // before it runs
//   if (!room.ok()) return room;                // OVER_LIMIT, ...
//   lease->Append({4, 8});                      // each commit
//   lease->Append({15});
//   lease->SetLastTurn(LastTurn());             // once, at its end
//   lease->Release();                           // idle again
//
// A turn with a request_id calls AcquireFor instead of Acquire, and RecordFor
// before it runs: the same request may have run already.

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "model/memory/state_image.h"
#include "model/text/vocabulary.h"
#include "server/base/clock.h"
#include "server/metrics/server_status.h"
#include "server/session/image_store.h"
#include "server/session/session_claim.h"
#include "server/session/session_info.h"
#include "server/session/session_journal.h"
#include "server/session/session_name.h"
#include "server/session/session_quota.h"
#include "server/session/shared_journal.h"
#include "server/session/token_sequence.h"
#include "server/session/turn_record.h"

namespace txl {

class SessionStore;
struct ImportedSession;  // session_import.h
struct SessionRecord;    // session_record.h

// Exclusive right to run one turn on a session; destroying it makes the
// session IDLE again (and removes a temporary one). Move-only; used by one
// thread at a time; ends before the store does.
class SessionLease {
 public:
  // Holds nothing, like one that was moved from or released: only assignment,
  // Release and destruction are allowed then.
  SessionLease() = default;
  SessionLease(SessionLease&&) noexcept;
  SessionLease& operator=(SessionLease&&) noexcept;
  ~SessionLease();

  const SessionName& name() const;  // empty: temporary
  // Unique over the store's life, never reused; keys the scheduler's slots.
  uint64_t key() const;
  int64_t position() const;
  const TokenSequence& token_ids() const;
  // Set by DeleteSession while this turn runs: end it with SESSION_DELETED.
  bool delete_requested() const;
  // Set when the same request came again (AcquireFor): end with SUPERSEDED.
  bool superseded() const;
  // Set if another server has the session or deleted it (shared journal only):
  // end with this, SESSION_MOVED or SESSION_DELETED. Nothing more is stored.
  std::optional<absl::Status> moved() const;
  // The claim of this copy of the session; null: it is not shared.
  std::shared_ptr<const SessionClaim> claim() const;

  // Tokens that the session may still be given: max_session_tokens - position.
  int64_t room() const;
  // Room for so many ids, >= 0, more than the session holds now, instead of
  // what was reserved before; call it before the turn runs. What Append did
  // not use is given back when the lease ends. Errors, which change nothing:
  // INVALID_ARGUMENT OVER_LIMIT session_id (more than room()),
  // RESOURCE_EXHAUSTED NO_SESSION_MEMORY with a time to retry, QUOTA bytes.
  absl::Status Reserve(int64_t tokens);
  // Commits: appends ids that the session now holds. Other threads see the new
  // position at once. Never refused: what was not reserved is taken from the
  // budget even where it is full.
  // `said`: of a turn with a name that generates, what the last ids gave.
  void Append(absl::Span<const int32_t> ids,
              absl::Span<const TokenEvent> said = {});
  // Append for a turn that commits once: the ids survive the process together
  // with the turn's end, which SetLastTurn tells.
  void AppendWithEnd(absl::Span<const int32_t> ids);
  // What the turn is going to do; before it runs. It is kept for a retry that
  // comes before the turn has committed anything.
  void Begin(TurnIntent intent);
  // What an earlier turn of this identity was going to do; nothing where no
  // such turn was the last one, or it has no name.
  std::optional<TurnIntent> IntentOf(const TurnIdentity& identity) const;
  // A copy of the session's detokenizer to run ahead with; null without a
  // vocabulary. SetDetokenizer commits it.
  std::unique_ptr<Detokenizer> CloneDetokenizer() const;
  void SetDetokenizer(std::unique_ptr<Detokenizer> detokenizer);
  // Replaces what RecordFor answers from; `record` null: no retry is known.
  void SetLastTurn(LastTurn turn,
                   std::shared_ptr<const TurnRecord> record = nullptr);
  // See turn_record.h.
  absl::StatusOr<std::shared_ptr<const TurnRecord>> RecordFor(
      const TurnIdentity& identity) const;

  // Ends the lease now.
  void Release();

 private:
  friend class SessionStore;
  SessionLease(SessionStore* store, std::shared_ptr<SessionRecord> record);
  SessionStore* store_ = nullptr;
  std::shared_ptr<SessionRecord> record_;
};

struct SessionStoreOptions {
  absl::Duration default_ttl = absl::Hours(24);
  absl::Duration min_ttl = absl::Seconds(1);
  absl::Duration max_ttl = absl::Hours(24 * 30);
  int64_t max_sessions = 100'000;  // idle and busy, temporary ones included
  int64_t max_session_tokens = int64_t{16} << 20;  // ids of one session
  // Host bytes for session records and token ids; over it new sessions and
  // turns get NO_SESSION_MEMORY.
  int64_t id_bytes = int64_t{1} << 30;
  // An empty session gives way when it was not used for so long.
  absl::Duration empty_grace = absl::Seconds(1);
  // Share of max_sessions and id_bytes, [0, 1), that only temporary sessions
  // may take, so that idle sessions never keep turns without a session out.
  double temporary_reserve = 1.0 / 16;
  // Host bytes for state images; over it new work gets NO_SESSION_MEMORY.
  int64_t image_bytes = int64_t{4} << 30;
  // Host bytes for the records of turns with a request_id; over it the oldest
  // are given up.
  int64_t turn_record_bytes = int64_t{256} << 20;
  // Bytes a session's segment memory takes, for memory_bytes and limits_of.
  int64_t bytes_per_slot = 0;
  // What tenants may keep; called under the store's lock. Null: what they want,
  // and it is not counted.
  SessionLimitsOf limits_of;
  // Ids of sessions remembered that expired or were evicted.
  int64_t remembered_ends = 10'000;
  // Request ids of a session's earlier turns remembered, so that a late retry
  // is refused; at most 16 are within what a session is counted with.
  int64_t remembered_requests = 16;
  const Vocabulary* vocabulary = nullptr;  // may be null; outlives the store
  // Ids that a state depends on, as RunnerInfo has it.
  int64_t rebuild_ids = std::numeric_limits<int64_t>::max();
  // Null: sessions end with the process. Outlives every call of the store.
  SessionJournal* journal = nullptr;
  // The same journal if other servers also write it, else null. A turn's
  // session is then acquired through AcquireFor's `later`, and what is in
  // memory is a copy that is looked at before it is used.
  SharedJournal* shared = nullptr;
  // Null: images are in memory only. Outlives every call of the store.
  ImageStore* images = nullptr;
  // How long a session without a slot stays in memory unused, if there is a
  // journal. If its memory is needed, it leaves after empty_grace.
  absl::Duration store_away_after = absl::Seconds(10);
  absl::Duration busy_retry = absl::Milliseconds(100);  // with SESSION_BUSY
  absl::Duration memory_retry = absl::Seconds(1);  // with NO_SESSION_MEMORY
};

// FIELD_INVALID ttl: it is outside of what the options allow.
absl::Status ValidateTtl(absl::Duration ttl,
                         const SessionStoreOptions& options);

struct ForkRequest {
  SessionName session = {};
  std::string new_session_id = {};         // of its tenant; empty: a random one
  std::optional<int64_t> position = {};    // absent: all ids
  std::optional<absl::Duration> ttl = {};  // absent: that of the forked session
  std::string request_id = {};  // sent again: the same fork; empty: none
};

// The id that a fork without one gets, if it has a request_id. The same call
// finds it again; a client that does not know the forked session's id cannot.
std::string IdOfFork(const ForkRequest& request);

struct RewindRequest {
  SessionName session = {};
  int64_t position = 0;
  std::optional<int64_t> expected_position = {};
  std::string request_id = {};  // sent again: OK; empty: none
};

// A whole session at one moment, without copies of its ids.
struct SessionSnapshot {
  StoredHead head;
  TokenSlice token_ids;
  // State after the session's first ids, maybe not all. Null: no state is kept.
  std::shared_ptr<const StateImage> state;
};

struct SessionPage {
  std::vector<SessionInfo> sessions;  // by id
  std::string next_page_token;        // empty: last page
};

struct SessionText {
  SessionInfo info;
  std::vector<int32_t> token_ids;  // those that were asked for
};

// List: page_size 0, and the largest page.
inline constexpr int kDefaultPageSize = 100;
inline constexpr int kMaxPageSize = 1000;

// Thread-safe. When sessions or their ids fill what they may take, idle
// sessions that hold no token end before anything is refused, the least
// recently used first, but none within its empty_grace. They are gone with
// SESSION_EVICTED.
//
// Errors carry the reasons of the public API
// (server/base/error.h): SESSION_UNKNOWN, SESSION_EXPIRED, SESSION_EVICTED,
// SESSION_EXISTS, SESSION_BUSY (+retry), NO_SESSION_MEMORY (+retry),
// FIELD_INVALID, OVER_LIMIT, QUOTA (of the session's tenant, before anything
// has changed).
class SessionStore {
 public:
  SessionStore(const SessionStoreOptions& options, Clock* clock);
  ~SessionStore();

  // Empty id: a random one of 128 bits. Absent ttl: the default. The last use
  // (creation, begin and end of a turn) moves the expiry; looking does not.
  absl::StatusOr<SessionInfo> Create(const SessionName& session,
                                     std::optional<absl::Duration> ttl);
  absl::StatusOr<SessionInfo> Get(const SessionName& session);
  // The session with at most `count` of its ids from position `from` on (both
  // >= 0; past the end: none), all of one moment. The ids are copied without
  // holding others up.
  absl::StatusOr<SessionText> GetTokens(const SessionName& session,
                                        int64_t from, int64_t count);
  // The tenant's. page_size 0: kDefaultPageSize; above kMaxPageSize: that.
  // Temporary sessions are not shown. A large page is read in parts, between
  // which sessions may come and go.
  absl::StatusOr<SessionPage> List(const std::string& tenant, int page_size,
                                   const std::string& page_token);
  // List including stored sessions. `done` runs at once without a journal, else
  // on another thread.
  void ListStored(const std::string& tenant, int page_size,
                  const std::string& page_token,
                  std::function<void(absl::StatusOr<SessionPage>)> done);
  // A busy session's turn is asked to end; the session is gone at once.
  absl::Status Delete(const SessionName& session);
  // Both want an idle session, else SESSION_BUSY, and count as its use.
  //
  // A new session with the first ids of another one; full pieces of ids are
  // shared. Also FIELD_INVALID position, SESSION_EXISTS, unless this very fork
  // was made before.
  absl::StatusOr<SessionInfo> Fork(const ForkRequest& request);
  // The session holds its first ids only, and remembers none of its turns.
  // Also FIELD_INVALID position, POSITION_MISMATCH.
  absl::StatusOr<SessionInfo> Rewind(const RewindRequest& request);
  // An idle session as it is, else SESSION_BUSY; no use of it.
  absl::StatusOr<SessionSnapshot> Snapshot(const SessionName& session);
  // A new session that holds all of `session`, whose own time-to-live, made to
  // fit, stands in for an absent one. Empty id: a random one. Its state is left
  // out where there is no room for it. Also SESSION_EXISTS, NO_SESSION_MEMORY.
  absl::StatusOr<SessionInfo> Import(const SessionName& name,
                                     std::optional<absl::Duration> ttl,
                                     ImportedSession session);
  // Whether the tenant's limits let one more session of so many tokens in; asks
  // only, so that another may come first. QUOTA.
  absl::Status MayAdd(const std::string& tenant, int64_t tokens);

  // Acquires an idle session. With a shared journal, use it only for calls that
  // do not change the session.
  absl::StatusOr<SessionLease> Acquire(const SessionName& session);
  // Acquire for a turn of this identity. While a turn of the same identity
  // runs, that turn is superseded, nothing is returned, and `later` gets the
  // lease after it, or SESSION_DELETED; a caller that waited before gets
  // SUPERSEDED. `later` is called once, on any thread, without the store's
  // lock. Also FIELD_INVALID request_id, when the running turn has that id and
  // is another request. With a shared journal `later` always gets the lease, or
  // SESSION_BUSY, STORE_UNAVAILABLE.
  absl::StatusOr<std::optional<SessionLease>> AcquireFor(
      const SessionName& session, TurnIdentity identity, LeaseCallback later);
  // A session without id that lives as long as its lease.
  absl::StatusOr<SessionLease> AcquireTemporary();

  // State images of sessions without a slot, by lease key; used by the
  // scheduler. Put replaces an earlier image; it fails with NO_SESSION_MEMORY
  // when the budget is full (the earlier one stays), with SESSION_UNKNOWN when
  // the session has ended.
  absl::Status PutImage(uint64_t key, StateImage image);
  // The image, which stays until it is dropped or the session ends; null: none.
  std::shared_ptr<const StateImage> GetImage(uint64_t key) const;
  void DropImage(uint64_t key);

  // Ends sessions whose time-to-live has passed; busy ones never. Called by
  // the scheduler's loop and by the methods above.
  void ExpireNow();
  // Keys of sessions that ended since the last call: their slots are free. A
  // deleted session whose turn still runs ends with that turn's lease.
  std::vector<uint64_t> TakeEndedKeys();
  // Whether the session may be stored and must be prepared: there is a journal
  // and the session is not in memory. A session in memory stays for a moment.
  // With a shared journal it is always true, as another server may have changed
  // the session, even while a turn runs here; AcquireFor checks that itself
  // (`acquires`).
  bool MayBeStored(const SessionName& session, bool acquires = false);
  // Brings a stored session into memory, where the methods above find it, and
  // calls `then`: at once if it is in memory, else, and where the journal is
  // shared, on another thread. Needs a journal. Several calls read it once.
  // Errors are those that keep a stored session away: DATA_LOSS
  // SESSION_DAMAGED, FAILED_PRECONDITION MODEL_MISMATCH, NO_SESSION_MEMORY,
  // STORE_UNAVAILABLE; and NOT_FOUND where it has expired or, with a shared
  // journal, there is none: the methods above say which.
  void Prepare(const SessionName& session,
               std::function<void(const absl::Status&)> then);
  // Whether a session that Prepare has brought left memory again, because
  // another server went on with it: it must be brought again.
  bool HasLeft(const SessionName& session) const;
  // Removes a stored session that Prepare could not bring. Needs a journal.
  // `done` is called on another thread once the removal is entered.
  void DiscardStored(const SessionName& session, std::function<void()> done);
  // Counts stored sessions for limits_of. Call it before everything else; needs
  // a journal that is not shared, and waits for it. Errors: what could not be
  // read does not count.
  absl::Status CountStored();
  // Ends stored sessions whose time-to-live has passed, and drops sessions from
  // memory that were unused for store_away_after. Needs a journal. Called
  // periodically.
  void TidyStored();
  // Keys of idle sessions in slots whose image, if any, is older than `tokens`,
  // for the scheduler to save. Needs a journal.
  std::vector<uint64_t> ImagesDue(int64_t tokens) const;
  // What there is, with at most `most` sessions of those in slots.
  StoreReport Report(size_t most) const;
  // A slot holds rows of the key's session, or does not any more.
  void SetInSlot(uint64_t key, bool in_slot);

  // IDLE or BUSY of a key, and how long it has been idle.
  struct KeyState {
    bool exists = false;
    bool busy = false;
    absl::Duration idle;
  };
  KeyState GetKeyState(uint64_t key) const;

  using Counts = SessionCounts;
  // Ends what has expired first, so that no caller sees it.
  Counts counts();
  // What every tenant keeps, if limits_of is set. A deleted session no longer
  // counts, even while its turn still ends.
  std::map<std::string, SessionUse> tenant_uses();
  // Called when a session ends, a lease is released or a busy session is
  // deleted: wakes the scheduler. On whichever thread did it, without the
  // store's lock, so it may call the store, but not SetWakeup. SetWakeup
  // returns when no call of the earlier function runs any more.
  void SetWakeup(std::function<void()> wakeup);

 private:
  friend class SessionLease;
  friend class StoreLock;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace txl
