#pragma once

// Entries and reads on their way to Redis, in their order. An entry stays until
// it is answered, whatever becomes of connections: repeated it does nothing
// twice. A read that cannot be answered fails.
//
// What Redis confirmed of a turn that runs, and has no more (a failover), is
// sent again as long as no other server came to own the session: the
// functions refuse what does not join what is there.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/byte_budget.h"
#include "server/session/session_claim.h"
#include "server/session/session_journal.h"
#include "server/store/journal_entry.h"
#include "server/store/redis/redis_calls.h"
#include "server/store/redis/redis_connection.h"

namespace txl {

struct RedisItem {
  std::string session_id;
  std::shared_ptr<SessionClaim> claim;  // of the entry
  std::optional<JournalEntry> entry;
  // Makes the command if `entry` is absent, in order. No words: nothing to ask.
  std::function<RedisCommand()> make;
  std::function<void(RedisAnswer)> answered;
};

// What a pass over the items found.
struct RedisPass {
  bool done = false;   // every entry was answered
  bool asked = false;  // anything was sent
  bool full = false;   // some storage has no room
  absl::Status error;
  // Entries that their claims had no right to: claim, and whether the entry was
  // a creation or a rewind, and why.
  struct Refused {
    std::string session_id;
    std::shared_ptr<SessionClaim> claim;
    bool answers = false;  // who made the entry waits for TakeRefusal
    absl::Status status;
  };
  std::vector<Refused> refused;
  int64_t tokens_lost = 0;
};

// Only the journal's thread uses it.
class RedisSender {
 public:
  // What is kept of turns is taken from `budget`, as long as that is less than
  // half used; null: there is none.
  RedisSender(RedisCaller caller, RedisLink* link, ByteBudget* budget)
      : caller_(std::move(caller)), link_(link), budget_(budget) {}

  // Bytes of a turn's last commands that are kept for that. A turn that finds
  // no room in the budget has nothing kept so far.
  static constexpr size_t kMostKept = 64 << 10;

  // Behind those that wait. REQUIRES: a fork or a rewind is the first, and none
  // wait.
  void Add(std::vector<RedisItem> items);
  bool empty() const { return waiting_.empty(); }
  // Sends what waits, and tells reads.
  RedisPass Send();

  // This server owns the session from `sent` on, a BootTime.
  void Own(const std::string& session_id, std::shared_ptr<SessionClaim> claim,
           absl::Duration sent);
  // What it owns, where nothing was confirmed since `interval`.
  struct Owned {
    std::string session_id;
    std::shared_ptr<SessionClaim> claim;
  };
  std::vector<Owned> Due(absl::Duration interval);

 private:
  struct Waiting {
    RedisItem item;
    bool made = false;  // the command is; once
    RedisCommand command;
    int64_t position = 0;  // of the claim before it
    bool again = false;    // was confirmed before, and lost
    bool answered = false;
  };
  // The last confirmed commands of a running turn.
  struct Turn {
    struct Kept {
      int64_t position = 0;  // of the claim before it
      size_t bytes = 0;
      RedisCommand command;
      ByteHold hold;  // of the memory that all this takes
    };
    std::shared_ptr<SessionClaim> claim;
    std::deque<Kept> kept;
    size_t bytes = 0;
  };

  // An error: what must be read for it cannot be read now.
  absl::Status Make(Waiting& waiting);
  absl::Status MakeFork(Waiting& waiting);
  absl::Status MakeRewind(Waiting& waiting);
  absl::StatusOr<StoredSession> ReadNow(const std::string& session_id);
  void SendWaiting(RedisPass& pass);
  void Take(Waiting& waiting, RedisAnswer answer, absl::Duration sent,
            RedisPass& pass);
  void TakeEntry(Waiting& waiting, const std::vector<std::string>& words,
                 absl::Duration sent, RedisPass& pass);
  // An entry was confirmed.
  void Keep(const Waiting& waiting);
  // Nothing: the budget has no room.
  std::optional<ByteHold> HoldCommand(const RedisCommand& command);
  // Redis has the session at `position`, and not where the entry begins. False:
  // what is missing is not known.
  bool EnterAgain(Waiting& waiting, int64_t position);
  void InsertLost();
  void Refuse(const Waiting& waiting, absl::Status status, int64_t moved_to,
              RedisPass& pass);

  const RedisCaller caller_;
  RedisLink* const link_;
  ByteBudget* const budget_;  // may be null
  std::vector<Waiting> waiting_;
  std::unordered_map<std::string, std::shared_ptr<SessionClaim>> owned_;
  std::unordered_map<std::string, Turn> turns_;
  // What goes before the first entry of a session that waits.
  std::unordered_map<std::string, std::vector<Waiting>> lost_;
};

}  // namespace txl
