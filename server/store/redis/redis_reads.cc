#include "server/store/redis/redis_reads.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "model/base/status_macros.h"
#include "server/session/session_errors.h"
#include "server/session/session_name.h"
#include "server/store/store_errors.h"

namespace txl {
namespace {

// Names that are asked for at a time.
constexpr int64_t kAtOnce = 1000;

absl::StatusOr<std::vector<std::string>> Ask(RedisShards& shards, size_t shard,
                                             const RedisCommand& command) {
  RedisAnswer answer = shards.CallOne(shard, command);
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

absl::StatusOr<std::vector<StoredInfo>> ListSessions(RedisShards& shards,
                                                     const std::string& after,
                                                     int64_t count) {
  std::vector<StoredInfo> page;
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    TXL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                         Ask(shards, shard, ListCall(after, count)));
    for (StoredInfo& info : ReadList(words)) page.push_back(std::move(info));
  }
  std::sort(page.begin(), page.end(),
            [](const StoredInfo& a, const StoredInfo& b) {
              return SessionName::OfText(a.head.session_id) <
                     SessionName::OfText(b.head.session_id);
            });
  if (page.size() > static_cast<size_t>(count)) page.resize(count);
  return page;
}

absl::StatusOr<std::vector<StoredPosition>> ListExpiredSessions(
    RedisShards& shards, absl::Time now, int64_t count) {
  std::vector<StoredPosition> all;
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    const int64_t wanted = count - static_cast<int64_t>(all.size());
    if (wanted <= 0) break;
    TXL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                         Ask(shards, shard, ExpiredCall(now, wanted)));
    for (StoredPosition& one : ReadExpired(words)) {
      all.push_back(std::move(one));
    }
  }
  return all;
}

absl::Status TellPositions(
    RedisShards& shards, const std::string& session_id,
    const std::function<void(const StoredPosition&)>& each) {
  if (!session_id.empty()) {
    TXL_ASSIGN_OR_RETURN(
        const std::vector<std::string> words,
        Ask(shards, shards.Of(session_id), LoadCall(session_id, nullptr)));
    int64_t position = 0;
    if (words.size() > 3 && absl::SimpleAtoi(words[3], &position)) {
      each({session_id, position});
    }
    return absl::OkStatus();
  }
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    std::string after;
    while (true) {
      TXL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                           Ask(shards, shard, NextNamesCall(after, kAtOnce)));
      const std::vector<StoredInfo> some = ReadList(words);
      for (const StoredInfo& info : some) {
        each({info.head.session_id, info.position});
      }
      if (static_cast<int64_t>(some.size()) < kAtOnce) break;
      after = RedisNameOf(some.back().head.session_id);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CountSessions(RedisShards& shards) {
  int64_t sum = 0;
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    TXL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                         Ask(shards, shard, {"ZCARD", "txl:ids"}));
    int64_t count = 0;
    if (!words.empty()) (void)absl::SimpleAtoi(words[0], &count);
    sum += count;
  }
  return sum;
}

}  // namespace txl
