#pragma once

// How much of a session is on stable storage, as far as its journal has come.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace txl {

// Not thread-safe. Takes memory for entries that wait for the storage only.
class DurablePosition {
 public:
  // The session was made by the journal's entry `entry`, or came from it.
  void Start(uint64_t entry, int64_t position) {
    waiting_.clear();
    durable_ = 0;
    if (entry == 0) durable_ = position;
    last_ = entry;
    if (entry > 0) waiting_.emplace_back(entry, position);
  }
  // Entry `entry` left the session at `position`; all up to `durable` are on
  // stable storage.
  void Entered(uint64_t entry, int64_t position, uint64_t durable) {
    last_ = entry;
    waiting_.emplace_back(entry, position);
    Advance(durable);
  }
  // Tokens of the session that are on stable storage.
  int64_t At(uint64_t durable) const {
    int64_t position = durable_;
    for (const auto& [entry, left_at] : waiting_) {
      if (entry > durable) break;
      position = left_at;
    }
    return position;
  }
  // Everything of the session is.
  bool Settled(uint64_t durable) const { return last_ <= durable; }

 private:
  void Advance(uint64_t durable) {
    size_t gone = 0;
    while (gone < waiting_.size() && waiting_[gone].first <= durable) {
      durable_ = waiting_[gone++].second;
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + gone);
  }

  std::vector<std::pair<uint64_t, int64_t>> waiting_;  // entry, position
  int64_t durable_ = 0;
  uint64_t last_ = 0;
};

}  // namespace txl
