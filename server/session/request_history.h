#pragma once

// Knows which request ids a session's earlier turns had, so that a retry that
// comes after a later turn is not taken for a new turn.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace txl {

// Keeps a hash of each id, 8 bytes: a new id is taken for one of n earlier ones
// with a probability of n / 2^64. Not thread-safe.
class RequestHistory {
 public:
  // The newest of at most `capacity` >= 0 ids; the oldest is forgotten first.
  void Add(absl::string_view request_id, int64_t capacity);
  bool Contains(absl::string_view request_id) const;

 private:
  std::vector<size_t> hashes_;  // oldest first
};

}  // namespace txl
