#pragma once

// The ids of a text while they are found, up to a limit.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"

namespace txl {

inline constexpr int64_t kNoTokenLimit = std::numeric_limits<int64_t>::max();

class TokenList {
 public:
  // REQUIRES: max_tokens >= 0.
  explicit TokenList(int64_t max_tokens) : max_tokens_(max_tokens) {}

  // OutOfRange ("more than N tokens") when the list is full.
  absl::Status Add(int32_t id) {
    if (ABSL_PREDICT_FALSE(size() >= max_tokens_)) return Full();
    ids_.push_back(id);
    return absl::OkStatus();
  }

  int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  std::vector<int32_t> Take() { return std::exchange(ids_, {}); }

 private:
  absl::Status Full() const;

  const int64_t max_tokens_;
  std::vector<int32_t> ids_;
};

}  // namespace txl
