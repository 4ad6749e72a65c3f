#pragma once

// Remembers which sessions the server ended by itself, so that their owners
// hear why instead of "unknown". Bounded: the oldest are forgotten first.

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

namespace txl {

enum class SessionEnd {
  kExpired,  // its time-to-live passed
  kEvicted,  // it was empty and others needed its place
};

// Not thread-safe.
class EndedIds {
 public:
  // Capacity 0 remembers nothing.
  explicit EndedIds(int64_t capacity) : capacity_(capacity) {}

  // The newest now, also when it was there already.
  void Remember(const std::string& session_id, SessionEnd how);
  // The id is in use again.
  void Forget(const std::string& session_id);
  // False: there is none.
  bool ForgetOldest();
  // Absent: not remembered.
  std::optional<SessionEnd> Find(const std::string& session_id) const;
  // Host bytes that they take.
  int64_t Bytes() const;

 private:
  struct Entry {
    std::string session_id;
    SessionEnd how;
  };

  const int64_t capacity_;
  std::list<Entry> oldest_first_;
  std::unordered_map<std::string, std::list<Entry>::iterator> by_id_;
};

}  // namespace txl
