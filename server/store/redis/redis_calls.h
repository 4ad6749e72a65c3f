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
#include "server/session/shared_journal.h"
#include "server/store/journal_entry.h"
#include "server/store/redis/redis_connection.h"

namespace txl {

// Arguments of every call of a server.
struct RedisCaller {
  std::string fingerprint;  // of the model
  int64_t vocab_size = 0;
  std::string owner;  // this process
  absl::Duration lease = absl::Seconds(5);
};

// 128 random bits.
std::string NewNonce();

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
// Call for entries except forks and rewinds. `claim` is the session's.
RedisCommand EntryCall(const RedisCaller& caller, const JournalEntry& entry,
                       SessionClaim& claim);
// `kept`: the ids that stay.
RedisCommand RewindCall(const RedisCaller& caller, const RewindEntry& entry,
                        const std::vector<int32_t>& kept, SessionClaim& claim);
// `claim` may be null.
RedisCommand ExpireCall(const std::string& session_id,
                        const SessionClaim* claim, absl::Time now);
// Sessions after `after` of its tenant; "": of all tenants, from the first.
RedisCommand ListCall(const std::string& after, int64_t count);
RedisCommand NextNamesCall(const std::string& after_name, int64_t count);
RedisCommand ExpiredCall(absl::Time now, int64_t count);

// What the answers to the calls of txl_1.lua say. Nothing of them is believed
// that a checksum or another value does not confirm.

// What LoadCall or AcquireCall gave; its claim's version is set. DATA_LOSS
// SESSION_DAMAGED, FAILED_PRECONDITION MODEL_MISMATCH.
absl::StatusOr<StoredSession> ReadSession(
    const RedisCaller& caller, const std::string& session_id,
    const std::vector<std::string>& words);
// The session as SharedJournal returns it, from the answer to a call with
// `held`. The version of `held` is the current one afterwards.
absl::StatusOr<SharedSession> ReadShared(
    const RedisCaller& caller, const std::string& session_id,
    const std::shared_ptr<SessionClaim>& held, const RedisAnswer& answer);
// Milliseconds for which another one owned it when it was read or acquired.
int64_t BusyOf(const std::vector<std::string>& words);
// Reads the answers to ListCall and NextNamesCall.
std::vector<StoredInfo> ReadList(const std::vector<std::string>& words);
std::vector<StoredPosition> ReadExpired(const std::vector<std::string>& words);

}  // namespace txl
