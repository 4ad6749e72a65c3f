#include "server/session/request_history.h"

#include <algorithm>

#include "absl/hash/hash.h"

namespace txl {

void RequestHistory::Add(absl::string_view request_id, int64_t capacity) {
  hashes_.push_back(absl::HashOf(request_id));
  if (static_cast<int64_t>(hashes_.size()) > capacity) {
    hashes_.erase(hashes_.begin());
  }
}

bool RequestHistory::Contains(absl::string_view request_id) const {
  const size_t hash = absl::HashOf(request_id);
  return std::find(hashes_.begin(), hashes_.end(), hash) != hashes_.end();
}

}  // namespace txl
