#pragma once

// One connection to one Redis: commands go together, their answers come in the
// same order.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/redis/redis_address.h"

struct redisContext;

namespace txl {

using RedisCommand = std::vector<std::string>;  // words, of any bytes

// What a command gives: the strings and numbers of its answer, one after the
// other; nothing is "". Errors of Redis itself: ResourceExhausted (its memory
// or disk is full), Unavailable (it is loading, or may not write now), else
// Internal.
using RedisAnswer = absl::StatusOr<std::vector<std::string>>;

// Not thread-safe.
class RedisConnection {
 public:
  // Connecting, and each wait for an answer, takes at most `timeout`.
  // Unavailable, with the address.
  static absl::StatusOr<std::unique_ptr<RedisConnection>> Open(
      const RedisAddress& address, absl::Duration timeout);
  ~RedisConnection();

  // Appends the answers that came. Fewer than commands: Unavailable, nobody
  // knows what became of the others, and the connection is of no use any more.
  absl::Status Call(const std::vector<RedisCommand>& commands,
                    std::vector<RedisAnswer>* answers);
  RedisAnswer CallOne(const RedisCommand& command);

 private:
  struct Free {
    void operator()(redisContext* context) const;
  };
  RedisConnection(std::string address,
                  std::unique_ptr<redisContext, Free> context);
  absl::Status Broken() const;

  const std::string address_;
  const std::unique_ptr<redisContext, Free> context_;
};

}  // namespace txl
