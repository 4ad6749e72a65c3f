#pragma once

// SessionJournal's changes as entries of one queue, for journals that have one.

#include <cstdint>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "server/store/journal_entry.h"

namespace txl {

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

}  // namespace txl
