#pragma once

// What SessionJournal's calls enter, as it waits for the database.

#include <cstdint>
#include <string>
#include <utility>
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

// SessionJournal's changes as entries of one queue, for journals that have one.

// Journal: SessionJournal, or one that promises more.
template <typename Journal>
class EnteringJournal : public Journal {
 public:
  uint64_t Create(const StoredHead& head, const TokenSequence& ids) final {
    return Enter(CreateEntry{head, ids.Slice(0, ids.size())});
  }
  uint64_t Fork(const std::string& parent, int64_t position,
                const StoredHead& child) final {
    return Enter(ForkEntry{parent, position, child});
  }
  uint64_t Begin(const std::string& session_id, TurnIntent intent,
                 absl::Time now) final {
    return Enter(BeginEntry{session_id, std::move(intent), now});
  }
  uint64_t Append(const std::string& session_id, JournalTokens tokens) final {
    return Enter(AppendEntry{session_id, std::move(tokens)});
  }
  uint64_t End(const std::string& session_id, JournalEnd end) final {
    return Enter(EndEntry{session_id, std::move(end)});
  }
  uint64_t Rewind(const std::string& session_id, int64_t position,
                  const StoredHead& head) final {
    return Enter(RewindEntry{session_id, position, head});
  }
  uint64_t Remove(const std::string& session_id) final {
    return Enter(RemoveEntry{session_id});
  }

 private:
  // Queues it; its number.
  virtual uint64_t Enter(JournalEntry entry) = 0;
};

struct SqliteJournalOptions {
  std::string folder;  // DATA; made where it is missing, its parent is not
  absl::Duration interval = absl::Milliseconds(100);
  int64_t max_bytes = int64_t{20'000'000'000};  // of the database
  std::string fingerprint;                      // of the model
  int64_t vocab_size = 0;
  bool recover = false;  // copy a store whose storage failed, then open it
  std::string vfs;       // SQLite's, for tests; empty: its own
};

}  // namespace txl
