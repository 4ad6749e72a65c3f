#pragma once

// What is asked of a shard beside its entries, and how a session is read. On
// the journal's thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/session/shared_journal.h"
#include "server/store/redis/redis_answers.h"
#include "server/store/redis/redis_calls.h"
#include "server/store/redis/redis_shard.h"

namespace txl {

// Of an answer to LoadCall or AcquireCall with `held`, whose version is then
// the current one. As SharedJournal's.
absl::StatusOr<SharedSession> ReadShared(
    const RedisCaller& caller, const std::string& session_id,
    const std::shared_ptr<SessionClaim>& held, const RedisAnswer& answer);

// As SessionJournal's, of the sessions of one shard.
absl::StatusOr<std::vector<StoredInfo>> ListSessions(RedisShard& shard,
                                                     const std::string& after,
                                                     int64_t count);
absl::StatusOr<std::vector<StoredPosition>> ListExpiredSessions(
    RedisShard& shard, absl::Time now, int64_t count);
absl::Status TellPositions(
    RedisShard& shard, const std::string& session_id,
    const std::function<void(const StoredPosition&)>& each);
absl::StatusOr<int64_t> CountSessions(RedisShard& shard);

}  // namespace txl
