#pragma once

// The sessions of the server as methods use them: what is stored is read first,
// and what has changed can be waited for until it is on stable storage. Without
// a journal all sessions are in memory, and nothing waits.

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/task_thread.h"
#include "server/metrics/server_status.h"
#include "server/scheduler/durable_sink.h"
#include "server/scheduler/scheduler.h"
#include "server/session/session_store.h"

namespace txl {

// How sessions outlive the process.
struct SessionStorage {
  // Options for the sink of each turn on a session, without the claim. If
  // `sink.journal` is null, sessions end with the process.
  DurableSinkOptions sink;
  // The journal again if several servers share it, else null.
  SharedJournal* shared = nullptr;
  const ImageStore* images = nullptr;  // state images on disk; null: none
  // Whether a crash of the machine can lose up to two seconds of confirmed
  // writes.
  bool late = false;
};

// Thread-safe. Copies refer to the same sessions.
class SessionAccess {
 public:
  SessionAccess() = default;  // there are none: only assignment is allowed then
  // All outlive it and what it starts.
  SessionAccess(SessionStore* store, Scheduler* scheduler,
                TaskThread* callbacks, SessionStorage storage = {});

  // The store itself, for a session that With has brought to it.
  SessionStore* operator->() const { return store_; }

  // Calls `then` once the session is where the store's methods find it, if
  // there is one: at once, or on the callback thread. Errors: as
  // SessionStore::Prepare. `acquires`: as SessionStore::MayBeStored.
  void With(const SessionName& session,
            std::function<void(const absl::Status&)> then,
            bool acquires = false) const;
  // Ends a session, stored or not, and calls `then`, at once or on the callback
  // thread. Its value is false if the stored session is damaged or belongs to
  // another model: owners can delete what this server cannot serve. For errors
  // see SessionStore::Delete and With.
  void End(const SessionName& session,
           std::function<void(const absl::StatusOr<bool>&)> then) const;
  // Calls `then` on the callback thread once all that sessions have become by
  // now is on stable storage; at once where there is no journal. Errors:
  // STORE_FULL, STORE_UNAVAILABLE.
  void WhenStored(std::function<void(const absl::Status&)> then) const;
  // WhenStored for an answer from a copy with this claim; null: the session is
  // not shared. If another server has taken the session over, `then` gets
  // SESSION_MOVED or SESSION_DELETED, because the answer may not be stored.
  void WhenStoredOf(std::shared_ptr<const SessionClaim> claim,
                    std::function<void(const absl::Status&)> then) const;
  // WhenStored after this session was created or rewound. If servers share the
  // journal, `then` also gets the error with which it refused that,
  // SESSION_EXISTS or SESSION_MOVED.
  void WhenChanged(const SessionName& session,
                   std::function<void(const absl::Status&)> then) const;
  // `sink`, which hears what is on stable storage of the lease's session;
  // itself where there is no journal.
  std::shared_ptr<TokenSink> StoredSink(
      const SessionLease& lease, std::shared_ptr<TokenSink> sink,
      std::shared_ptr<CancelToken> cancel) const;

  // Absent where there is no journal.
  std::optional<StoreUse> Use() const;

 private:
  SessionStore* store_ = nullptr;
  TaskThread* callbacks_ = nullptr;
  SessionStorage storage_;
};

}  // namespace txl
