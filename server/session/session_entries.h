#pragma once

// What the journal is told of sessions, and the image store of their end.

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "server/base/clock.h"
#include "server/session/image_store.h"
#include "server/session/session_journal.h"
#include "server/session/session_name.h"
#include "server/session/session_record.h"
#include "server/session/shared_journal.h"
#include "server/session/turn_record.h"

namespace txl {

// The session as it is now, without its ids.
StoredHead HeadOf(const SessionRecord& record, absl::Time now);

// Of a session that is `journaled` every change is entered, in the order of the
// calls, and `durable` of its record has every entry with the position that it
// left. Of another one nothing is: it is temporary, was removed, or belongs to
// another server by now. Only this class makes entries.
//
// Not thread-safe: the store's mutex guards it, so that the entries have the
// order of the changes.
class SessionEntries {
 public:
  // Null: there is none. Without a journal no session is journaled, and only
  // calls with a record are allowed.
  struct Journals {
    SessionJournal* journal = nullptr;
    SharedJournal* shared = nullptr;  // the same where it is shared
    ImageStore* images = nullptr;
  };
  SessionEntries(const Journals& journals, Clock* clock)
      : to_(journals), clock_(clock) {}

  // A new session, which is journaled from now on, with all that it holds.
  void Create(SessionRecord& record);
  // A new session that begins with what `parent` holds.
  void Fork(const SessionRecord& parent, SessionRecord& child);
  void Begin(SessionRecord& record);  // its `intent`
  void Append(SessionRecord& record, JournalTokens tokens,
              absl::Span<const TokenEvent> said);
  // The last turn of the session ended; the entry has `tokens_of_end`.
  void End(SessionRecord& record, std::shared_ptr<const TurnRecord> turn);
  // The session was rewound to its present position.
  void Rewind(SessionRecord& record);

  // A session and its image are removed. Returns the entry.
  uint64_t Remove(const SessionName& name);
  // Remove for a session whose time-to-live has passed. If another server of a
  // shared journal has used it since, session and image stay.
  uint64_t Expire(const SessionName& name);

  // The journal's last entry that is on stable storage.
  uint64_t durable() const { return to_.journal->durable_entry(); }

 private:
  void Entered(SessionRecord& record, uint64_t entry);

  const Journals to_;
  Clock* const clock_;
};

}  // namespace txl
