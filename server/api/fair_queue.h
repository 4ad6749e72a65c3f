#pragma once

// A bounded queue with lanes that take turns: a lane that puts in much waits
// behind itself only.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace txl {

// Not thread-safe.
template <typename Item>
class FairQueue {
 public:
  explicit FairQueue(size_t limit) : limit_(limit) {}

  // Queues `item` at the end of its lane. Returns what found no room, if
  // anything: the item itself or, when another lane has more than this one
  // would have, that lane's newest.
  std::optional<Item> Push(const std::string& lane, Item item) {
    std::optional<Item> dropped;
    if (size_ == limit_) {
      const auto longest = Longest();
      const auto own = lanes_.find(lane);
      const size_t waiting = own == lanes_.end() ? 0 : own->second.size();
      if (longest == lanes_.end() || longest->second.size() <= waiting + 1) {
        return item;
      }
      dropped = std::move(longest->second.back());
      longest->second.pop_back();
      --size_;
    }
    std::deque<Item>& items = lanes_[lane];
    if (items.empty()) turns_.push_back(lane);
    items.push_back(std::move(item));
    ++size_;
    return dropped;
  }

  // The oldest item of the lane whose turn it is. REQUIRES: not empty.
  Item Pop() {
    const std::string lane = std::move(turns_.front());
    turns_.pop_front();
    const auto found = lanes_.find(lane);
    Item item = std::move(found->second.front());
    found->second.pop_front();
    --size_;
    if (found->second.empty()) {
      lanes_.erase(found);
    } else {
      turns_.push_back(lane);
    }
    return item;
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

 private:
  using Lanes = std::map<std::string, std::deque<Item>>;

  // A lane of more than one item is never emptied by Push.
  typename Lanes::iterator Longest() {
    auto longest = lanes_.end();
    for (auto at = lanes_.begin(); at != lanes_.end(); ++at) {
      if (longest == lanes_.end() ||
          at->second.size() > longest->second.size()) {
        longest = at;
      }
    }
    return longest;
  }

  const size_t limit_;
  size_t size_ = 0;
  Lanes lanes_;  // none is empty
  std::list<std::string> turns_;
};

}  // namespace txl
