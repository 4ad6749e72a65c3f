#pragma once

// A set of bounded size that gives up what was used longest ago.

#include <cstdint>
#include <list>
#include <optional>

#include "absl/container/flat_hash_map.h"

namespace txl::fleet {

class LruList {
 public:
  explicit LruList(int64_t capacity) : capacity_(capacity) {}

  int64_t size() const { return static_cast<int64_t>(order_.size()); }
  bool Contains(uint64_t key) const { return places_.contains(key); }

  // Makes it the one used last, and returns who had to go for it: itself where
  // there is no room at all.
  std::optional<uint64_t> Use(uint64_t key);
  // False where it was not there.
  bool Remove(uint64_t key);
  // The one used longest ago, which is in no more; absent where nobody is.
  std::optional<uint64_t> RemoveOldest();
  void Clear();

 private:
  int64_t capacity_;
  std::list<uint64_t> order_;  // used last in front
  absl::flat_hash_map<uint64_t, std::list<uint64_t>::iterator> places_;
};

}  // namespace txl::fleet
