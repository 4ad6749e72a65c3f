#pragma once

// A journal that several servers write. A session is changed by the one that
// owns it, for a while that each of its changes extends:
//
//   journal->Acquire(id, request, held, done);  // before a turn
//   journal->Hold(id, claim);                   // of what `done` was given
//   ... entries of the turn ...                 // Begin, Append, End
//   journal->Release(id);                       // where no End came
//
// What another server changed meanwhile refuses the entries behind it: they
// change nothing, the claim says so and OnMoved's function is called. For who
// waits they count as stored: see SessionClaim.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/session/session_claim.h"
#include "server/session/session_journal.h"

namespace txl {

// A copy that is current, or, where what the caller held was not, another one.
struct SharedSession {
  std::optional<StoredSession> stored;  // absent: `held` is current
  std::shared_ptr<SessionClaim> claim;  // of the current one
};

// A storage that does not answer for so long is not there: the server has no
// work to take.
inline constexpr absl::Duration kStoreSilence = absl::Seconds(3);

class SharedJournal : public SessionJournal {
 public:
  using Done = std::function<void(absl::StatusOr<SharedSession>)>;

  // The entries of this session that follow are of the copy of this claim.
  virtual void Hold(const std::string& session_id,
                    std::shared_ptr<SessionClaim> claim) = 0;
  // This server no longer has that copy.
  virtual void Drop(const std::string& session_id,
                    const std::shared_ptr<SessionClaim>& claim) = 0;

  // Like Load; also where nothing changed since `held` (null: nothing is held).
  // Where another server changed it, `held` says so from then on.
  virtual void Refresh(const std::string& session_id,
                       std::shared_ptr<SessionClaim> held, Done done) = 0;
  // The same, and this server owns the session. A turn of the same identity,
  // with a name, is taken over wherever it runs; else ABORTED SESSION_BUSY
  // (+retry) while another server owns it.
  virtual void Acquire(const std::string& session_id,
                       const TurnIdentity& identity,
                       std::shared_ptr<SessionClaim> held, Done done) = 0;
  // No server owns it any more, if this one did.
  virtual void Release(const std::string& session_id) = 0;
  // Remove, but only where its time-to-live has passed by then wherever it was
  // used last, and no server owns it: then calls `removed`.
  virtual uint64_t Expire(const std::string& session_id, absl::Time now,
                          std::function<void()> removed) = 0;
  // Why a creation or rewind of this session was refused, SESSION_EXISTS or
  // SESSION_MOVED; once for each. Known when that entry is durable.
  virtual absl::Status TakeRefusal(const std::string& session_id) = 0;
  // Called on the journal's thread for each claim that was lost. Before the
  // first entry.
  virtual void OnMoved(
      std::function<void(const std::string& session_id,
                         const std::shared_ptr<SessionClaim>& claim)>
          moved) = 0;

  // How long no answer has come from the storage; zero: it answers.
  virtual absl::Duration Silent() const = 0;
};

}  // namespace txl
