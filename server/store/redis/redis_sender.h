#pragma once

// Entries and reads on their way to Redis, in their order. An entry stays until
// it is answered, whatever becomes of connections: repeated it does nothing
// twice. A read that cannot be answered fails.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/session/session_claim.h"
#include "server/store/journal_entry.h"
#include "server/store/redis/redis_calls.h"
#include "server/store/redis/redis_shards.h"

namespace txl {

struct RedisItem {
  std::string session_id;
  std::shared_ptr<SessionClaim> claim;  // of the entry
  std::optional<JournalEntry> entry;
  // Without an entry: made when those before it are; no words: nothing to ask.
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

// Of the journal's thread.
class RedisSender {
 public:
  RedisSender(RedisCaller caller, RedisShards* shards)
      : caller_(std::move(caller)), shards_(shards) {}

  // Behind those that wait. REQUIRES: a fork is the first, and none wait.
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
    size_t shard = 0;
    bool made = false;  // the command is; once
    RedisCommand command;
    int64_t position = 0;  // of the claim before it
    bool answered = false;
  };

  // An error: a fork whose parent cannot be read now.
  absl::Status Make(Waiting& waiting);
  absl::Status MakeFork(Waiting& waiting);
  void SendTo(size_t shard, RedisPass& pass);
  void Take(Waiting& waiting, RedisAnswer answer, absl::Duration sent,
            RedisPass& pass);
  void TakeEntry(Waiting& waiting, const std::vector<std::string>& words,
                 absl::Duration sent, RedisPass& pass);
  void Refuse(const Waiting& waiting, absl::Status status, int64_t moved_to,
              RedisPass& pass);

  const RedisCaller caller_;
  RedisShards* const shards_;
  std::vector<Waiting> waiting_;
  std::unordered_map<std::string, std::shared_ptr<SessionClaim>> owned_;
};

}  // namespace txl
