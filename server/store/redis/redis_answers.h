#pragma once

// What the answers to the calls of txl_1.lua say. Nothing of them is believed
// that a checksum or another value does not confirm.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/session/session_journal.h"
#include "server/store/redis/redis_calls.h"

namespace txl {

// What LoadCall or AcquireCall gave; its claim's version is set. DATA_LOSS
// SESSION_DAMAGED, FAILED_PRECONDITION MODEL_MISMATCH.
absl::StatusOr<StoredSession> ReadSession(
    const RedisCaller& caller, const std::string& session_id,
    const std::vector<std::string>& words);
// Milliseconds for which another one owned it when it was read or acquired.
int64_t BusyOf(const std::vector<std::string>& words);
// Of ListCall and NextNamesCall.
std::vector<StoredInfo> ReadList(const std::vector<std::string>& words);
std::vector<StoredPosition> ReadExpired(const std::vector<std::string>& words);

}  // namespace txl
