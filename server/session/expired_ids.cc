#include "server/session/expired_ids.h"

namespace txl {

void ExpiredIds::Remember(const std::string& session_id) {
  Forget(session_id);
  oldest_first_.push_back(session_id);
  by_id_[session_id] = --oldest_first_.end();
  while (static_cast<int64_t>(by_id_.size()) > capacity_) {
    // A copy: Forget frees the list's string before it is done with it.
    Forget(std::string(oldest_first_.front()));
  }
}

void ExpiredIds::Forget(const std::string& session_id) {
  const auto found = by_id_.find(session_id);
  if (found == by_id_.end()) return;
  oldest_first_.erase(found->second);
  by_id_.erase(found);
}

bool ExpiredIds::Contains(const std::string& session_id) const {
  return by_id_.count(session_id) > 0;
}

}  // namespace txl
