#pragma once

// The connections to all shards of a store.

#include <memory>
#include <string>
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
class RedisShards {
 public:
  RedisShards(std::vector<RedisAddress> addresses, absl::Duration timeout);

  size_t size() const { return shards_.size(); }
  size_t Of(const std::string& session_id) const;

  // All are there and may keep sessions; errors name the address.
  absl::Status Check();
  // Of Check: some of them writes to its disk only each second.
  bool late() const { return late_; }

  // Connects where it has to, once more where an old connection was broken.
  // Appends the answers that came; an error: the others did not.
  absl::Status Call(size_t shard, const std::vector<RedisCommand>& commands,
                    std::vector<RedisAnswer>* answers);
  RedisAnswer CallOne(size_t shard, const RedisCommand& command);

 private:
  struct Shard {
    RedisAddress address;
    std::unique_ptr<RedisConnection> connection;
  };
  // With the functions loaded.
  absl::Status Connect(Shard& shard);
  absl::Status CheckOne(Shard& shard);

  const absl::Duration timeout_;
  std::vector<Shard> shards_;
  bool late_ = false;
};

}  // namespace txl
