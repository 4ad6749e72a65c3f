#include "server/session/ended_ids.h"

namespace txl {
namespace {

// Two nodes with an id of 64 characters each, as the allocator rounds them up.
constexpr int64_t kBytesOfOne = 320;

}  // namespace

void EndedIds::Remember(const std::string& session_id, SessionEnd how) {
  Forget(session_id);
  oldest_first_.push_back({session_id, how});
  by_id_[session_id] = --oldest_first_.end();
  if (static_cast<int64_t>(by_id_.size()) > capacity_) ForgetOldest();
}

void EndedIds::Forget(const std::string& session_id) {
  const auto found = by_id_.find(session_id);
  if (found == by_id_.end()) return;
  oldest_first_.erase(found->second);
  by_id_.erase(found);
}

bool EndedIds::ForgetOldest() {
  if (oldest_first_.empty()) return false;
  by_id_.erase(oldest_first_.front().session_id);
  oldest_first_.pop_front();
  return true;
}

std::optional<SessionEnd> EndedIds::Find(const std::string& session_id) const {
  const auto found = by_id_.find(session_id);
  if (found == by_id_.end()) return std::nullopt;
  return found->second->how;
}

int64_t EndedIds::Bytes() const {
  return static_cast<int64_t>(by_id_.size()) * kBytesOfOne;
}

}  // namespace txl
