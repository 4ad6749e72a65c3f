#pragma once

// The calls of txl_1.lua as commands. Pure: a claim is given, and what a call
// makes of its version is in it afterwards, as if the call had been answered.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/session/session_claim.h"
#include "server/session/session_journal.h"
#include "server/store/journal_entry.h"
#include "server/store/redis/redis_connection.h"

namespace txl {

// Of all calls of a server.
struct RedisCaller {
  std::string fingerprint;  // of the model
  int64_t vocab_size = 0;
  std::string owner;  // this process
  absl::Duration lease = absl::Seconds(5);
};

// Bytes of an id.
int64_t WidthOf(const RedisCaller& caller);

// "default/verona" of the session "verona": in the order of listings.
std::string RedisNameOf(const std::string& session_id);
std::string SessionOfRedisName(const std::string& name);

// `held` may be null.
RedisCommand LoadCall(const std::string& session_id, const SessionClaim* held);
RedisCommand AcquireCall(const RedisCaller& caller,
                         const std::string& session_id,
                         const TurnIdentity& identity, const std::string& nonce,
                         const SessionClaim* held);
RedisCommand TouchCall(const RedisCaller& caller, const std::string& session_id,
                       const SessionClaim& claim);
RedisCommand ReleaseCall(const std::string& session_id, SessionClaim& claim);
// Of any entry but a fork and a rewind. `claim` is the session's.
RedisCommand EntryCall(const RedisCaller& caller, const JournalEntry& entry,
                       SessionClaim& claim);
// `kept`: the ids that stay.
RedisCommand RewindCall(const RedisCaller& caller, const RewindEntry& entry,
                        const std::vector<int32_t>& kept, SessionClaim& claim);
// `claim` may be null.
RedisCommand ExpireCall(const std::string& session_id,
                        const SessionClaim* claim, absl::Time now);
// Those of the tenant of `after` behind it; "": of all tenants, from the first.
RedisCommand ListCall(const std::string& after, int64_t count);
RedisCommand NextNamesCall(const std::string& after_name, int64_t count);
RedisCommand ExpiredCall(absl::Time now, int64_t count);

}  // namespace txl
