#pragma once

// Connections to Redis: commands go together, their answers come in the same
// order. RedisConnection is one of them, RedisLink makes the next one when it
// breaks.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

struct redisContext;

namespace txl {

struct RedisAddress {
  std::string host;
  int port = 0;

  std::string text() const;  // HOST:PORT
};

// Parses "redis://HOST:PORT". A host with colons is in brackets.
// InvalidArgument, naming the text, if it is not one such address.
absl::StatusOr<RedisAddress> ParseRedisAddress(absl::string_view text);

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

  // Appends the answers that came. Fewer than commands: Unavailable. What
  // became of the others is unknown, and the connection is of no use any more.
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

// Whether what Redis says of itself (INFO) and its appendfsync let it keep
// sessions: FailedPrecondition names the setting that does not.
absl::Status CheckRedis(absl::string_view info, absl::string_view appendfsync);

// The store's Redis with the functions loaded. Not thread-safe.
class RedisLink {
 public:
  RedisLink(RedisAddress address, absl::Duration timeout)
      : address_(std::move(address)), timeout_(timeout) {}

  // It is there and may keep sessions; errors name the address.
  absl::Status Check();
  // Whether Check found that Redis writes to its disk only once a second.
  bool late() const { return late_; }

  // Connects where it has to, once more where an old connection was broken.
  // Appends the answers that came; an error: the others did not.
  absl::Status Call(const std::vector<RedisCommand>& commands,
                    std::vector<RedisAnswer>* answers);
  RedisAnswer CallOne(const RedisCommand& command);

 private:
  absl::Status Connect();
  absl::Status CheckSettings();

  const RedisAddress address_;
  const absl::Duration timeout_;
  std::unique_ptr<RedisConnection> connection_;
  bool late_ = false;
};

}  // namespace txl
