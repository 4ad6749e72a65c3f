#pragma once

// Knows which request ids a session's earlier turns had, so that a retry that
// comes after a later turn is not taken for a new turn.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace txl {

// Keeps a hash of each id, 8 bytes, the same in every process: a new id is
// taken for one of n earlier ones with a probability of n / 2^64, unless it was
// made to be. Not thread-safe.
class RequestHistory {
 public:
  RequestHistory() = default;
  // What hashes() of another one gave.
  explicit RequestHistory(std::vector<uint64_t> hashes)
      : hashes_(std::move(hashes)) {}

  // The newest of at most `capacity` >= 0 ids; the oldest is forgotten first.
  void Add(absl::string_view request_id, int64_t capacity);
  bool Contains(absl::string_view request_id) const;
  // Oldest first.
  const std::vector<uint64_t>& hashes() const { return hashes_; }

 private:
  std::vector<uint64_t> hashes_;  // oldest first
};

}  // namespace txl
