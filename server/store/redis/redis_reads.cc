#include "server/store/redis/redis_reads.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "model/base/status_macros.h"
#include "server/session/session_errors.h"
#include "server/store/store_errors.h"

namespace txl {
namespace {

// Names that are asked for at a time.
constexpr int64_t kAtOnce = 1000;

absl::StatusOr<std::vector<std::string>> Ask(RedisShard& shard,
                                             const RedisCommand& command) {
  RedisAnswer answer = shard.CallOne(command);
  if (!answer.ok()) return StoreFailedError();
  return answer;
}

}  // namespace

absl::StatusOr<SharedSession> ReadShared(
    const RedisCaller& caller, const std::string& session_id,
    const std::shared_ptr<SessionClaim>& held, const RedisAnswer& answer) {
  if (!answer.ok()) return StoreFailedError();
  if (answer->empty()) return SessionDamagedError();
  const std::vector<std::string>& words = *answer;
  if (words[0] == "GONE") return SessionUnknownError();
  if (words[0] == "MODEL") return OtherModelError();
  if (words[0] == "BUSY") {
    return SessionBusyError(absl::Milliseconds(BusyOf(words)));
  }
  SharedSession found;
  if (words[0] == "SAME") {
    found.claim = held;
    if (words.size() == 4) {  // acquired
      held->version.epoch = words[1];
      held->version.nonce = words[2];
    }
    return found;
  }
  TXL_ASSIGN_OR_RETURN(found.stored, ReadSession(caller, session_id, words));
  found.claim = found.stored->claim;
  return found;
}

absl::StatusOr<std::vector<StoredInfo>> ListSessions(RedisShard& shard,
                                                     const std::string& after,
                                                     int64_t count) {
  TXL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                       Ask(shard, ListCall(after, count)));
  return ReadList(words);
}

absl::StatusOr<std::vector<StoredPosition>> ListExpiredSessions(
    RedisShard& shard, absl::Time now, int64_t count) {
  TXL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                       Ask(shard, ExpiredCall(now, count)));
  return ReadExpired(words);
}

absl::Status TellPositions(
    RedisShard& shard, const std::string& session_id,
    const std::function<void(const StoredPosition&)>& each) {
  if (!session_id.empty()) {
    TXL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                         Ask(shard, LoadCall(session_id, nullptr)));
    int64_t position = 0;
    if (words.size() > 3 && absl::SimpleAtoi(words[3], &position)) {
      each({session_id, position});
    }
    return absl::OkStatus();
  }
  std::string after;
  while (true) {
    TXL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                         Ask(shard, NextNamesCall(after, kAtOnce)));
    const std::vector<StoredInfo> some = ReadList(words);
    for (const StoredInfo& info : some) {
      each({info.head.session_id, info.position});
    }
    if (static_cast<int64_t>(some.size()) < kAtOnce) return absl::OkStatus();
    after = RedisNameOf(some.back().head.session_id);
  }
}

absl::StatusOr<int64_t> CountSessions(RedisShard& shard) {
  TXL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                       Ask(shard, {"ZCARD", "txl:ids"}));
  int64_t count = 0;
  if (!words.empty()) (void)absl::SimpleAtoi(words[0], &count);
  return count;
}

}  // namespace txl
