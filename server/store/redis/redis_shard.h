#pragma once

// The connection to a shard of a store.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/redis/redis_address.h"
#include "server/store/redis/redis_connection.h"

namespace txl {

// Whether what Redis says of itself (INFO) and its appendfsync let it keep
// sessions: FailedPrecondition names the setting that does not.
absl::Status CheckRedis(absl::string_view info, absl::string_view appendfsync);

// Not thread-safe.
class RedisShard {
 public:
  RedisShard(RedisAddress address, absl::Duration timeout)
      : address_(std::move(address)), timeout_(timeout) {}

  // It is there and may keep sessions; errors name the address.
  absl::Status Check();
  // Of Check: it writes to its disk only each second.
  bool late() const { return late_; }

  // Connects where it has to, once more where an old connection was broken.
  // Appends the answers that came; an error: the others did not.
  absl::Status Call(const std::vector<RedisCommand>& commands,
                    std::vector<RedisAnswer>* answers);
  RedisAnswer CallOne(const RedisCommand& command);

 private:
  // With the functions loaded.
  absl::Status Connect();
  absl::Status CheckSettings();

  const RedisAddress address_;
  const absl::Duration timeout_;
  std::unique_ptr<RedisConnection> connection_;
  bool late_ = false;
};

}  // namespace txl
