#pragma once

// Where the shards of a store of sessions are.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

struct RedisAddress {
  std::string host;
  int port = 0;

  std::string text() const;  // HOST:PORT
};

// Of "redis://HOST:PORT[,redis://HOST:PORT...]". A host with colons stands in
// brackets. InvalidArgument names what is none.
absl::StatusOr<std::vector<RedisAddress>> ParseRedisAddresses(
    absl::string_view text);

// Which of `shards` > 0 keeps this session: for ever the same for the same
// number of shards.
size_t ShardOf(absl::string_view session_name, size_t shards);

}  // namespace txl
