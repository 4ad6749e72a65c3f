#pragma once

// How a text is encoded, and its ids while they are found.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/status/status.h"

namespace txl {

inline constexpr int64_t kNoTokenLimit = std::numeric_limits<int64_t>::max();

struct EncodeOptions {
  int64_t max_tokens = kNoTokenLimit;  // >= 0
  // Pieces of text without a symbol are left out. Else each becomes the unknown
  // symbol; where the vocabulary has none, the text is refused.
  bool skip_unknown = false;
};

class TokenList {
 public:
  explicit TokenList(const EncodeOptions& options) : options_(options) {}

  // OutOfRange ("more than N tokens") when the list is full.
  absl::Status Add(int32_t id) {
    if (ABSL_PREDICT_FALSE(size() >= options_.max_tokens)) return Full();
    ids_.push_back(id);
    return absl::OkStatus();
  }

  bool skips_unknown() const { return options_.skip_unknown; }
  int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  std::vector<int32_t> Take() { return std::exchange(ids_, {}); }

 private:
  absl::Status Full() const;

  const EncodeOptions options_;
  std::vector<int32_t> ids_;
};

}  // namespace txl
