#pragma once

// What SessionJournal's calls enter, as it waits for the database.

#include <cstdint>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "server/session/session_journal.h"

namespace txl {

struct CreateEntry {
  StoredHead head;
  TokenSlice ids;
};
struct ForkEntry {
  std::string parent;
  int64_t position = 0;
  StoredHead child;
};
struct BeginEntry {
  std::string session_id;
  TurnIntent intent;
  absl::Time now;
};
struct AppendEntry {
  std::string session_id;
  JournalTokens tokens;
};
struct EndEntry {
  std::string session_id;
  JournalEnd end;
};
struct RewindEntry {
  std::string session_id;
  int64_t position = 0;
  StoredHead head;
};
struct RemoveEntry {
  std::string session_id;
};

using JournalEntry =
    std::variant<CreateEntry, ForkEntry, BeginEntry, AppendEntry, EndEntry,
                 RewindEntry, RemoveEntry>;

// The session that the entry changes.
const std::string& SessionOf(const JournalEntry& entry);
// Ids that the session takes on in a turn.
int64_t TokensOf(const JournalEntry& entry);
// Whether the store has more room after it.
bool MakesRoom(const JournalEntry& entry);

}  // namespace txl
