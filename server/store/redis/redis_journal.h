#pragma once

// The journal of sessions in Redis, for servers that share them: txl_1.lua says
// what is kept and how it is guarded. Each session is kept by the shard that
// the hash of its name picks. Each shard has a thread: it takes all entries
// that have come, joins those of a turn, and sends them together, each
// `interval` or at once when somebody waits. "Stable storage" is what Redis
// answers after: with `appendfsync always` its disk.
//
// While a shard does not answer, entries of its sessions wait, and reads of
// them fail with STORE_UNAVAILABLE, as do lists of all.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/byte_budget.h"
#include "server/session/shared_journal.h"
#include "server/store/redis/redis_address.h"

namespace txl {

struct RedisJournalOptions {
  std::vector<RedisAddress> shards;  // at least one
  absl::Duration interval = absl::Seconds(1);
  // A session is its owner's for so long after each change.
  absl::Duration lease = absl::Seconds(5);
  // Of an answer; then the connection counts as broken.
  absl::Duration timeout = absl::Seconds(2);
  std::string fingerprint;  // of the model
  int64_t vocab_size = 0;
  // What running turns keep to send again is taken from it, as long as less
  // than half is used. Outlives the journal. Null: only turns have a limit.
  ByteBudget* kept = nullptr;
};

struct OpenedRedisJournal {
  std::unique_ptr<SharedJournal> journal;
  // What is confirmed may not be on a disk for up to two seconds: some shard
  // has `appendfsync everysec`.
  bool late = false;
};

// Errors name the shard: FailedPrecondition (it does not keep what it confirms:
// no primary, no append-only file, an eviction policy, or it is older than
// version 7), Unavailable.
absl::StatusOr<OpenedRedisJournal> OpenRedisJournal(
    const RedisJournalOptions& options);

}  // namespace txl
