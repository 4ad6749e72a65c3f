#pragma once

// Remembers which sessions expired, so that their owners hear "expired"
// instead of "unknown". Bounded: the oldest are forgotten first.

#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>

namespace txl {

// Not thread-safe.
class ExpiredIds {
 public:
  // Capacity 0 remembers nothing.
  explicit ExpiredIds(int64_t capacity) : capacity_(capacity) {}

  // The newest now, also when it was there already.
  void Remember(const std::string& session_id);
  // The id is in use again.
  void Forget(const std::string& session_id);
  bool Contains(const std::string& session_id) const;

 private:
  const int64_t capacity_;
  std::list<std::string> oldest_first_;
  std::unordered_map<std::string, std::list<std::string>::iterator> by_id_;
};

}  // namespace txl
