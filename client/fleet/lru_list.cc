#include "client/fleet/lru_list.h"

namespace txl::fleet {

std::optional<uint64_t> LruList::Use(uint64_t key) {
  Remove(key);
  order_.push_front(key);
  places_[key] = order_.begin();
  if (size() <= capacity_) return std::nullopt;
  return RemoveOldest();
}

bool LruList::Remove(uint64_t key) {
  const auto place = places_.find(key);
  if (place == places_.end()) return false;
  order_.erase(place->second);
  places_.erase(place);
  return true;
}

std::optional<uint64_t> LruList::RemoveOldest() {
  if (order_.empty()) return std::nullopt;
  const uint64_t oldest = order_.back();
  Remove(oldest);
  return oldest;
}

void LruList::Clear() {
  order_.clear();
  places_.clear();
}

}  // namespace txl::fleet
