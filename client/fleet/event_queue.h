#pragma once

// What happens when, in simulated time.

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace txl::fleet {

// Not thread-safe.
template <typename What>
class EventQueue {
 public:
  struct Event {
    double time = 0;
    int64_t order = 0;
    What what;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  // In any order of times; what has one time happens as it was added.
  void Add(double time, What what) { events_.push({time, added_++, what}); }
  bool empty() const { return events_.empty(); }
  // REQUIRES: !empty().
  double next_time() const { return events_.top().time; }
  Event Pop() {
    Event event = events_.top();
    events_.pop();
    return event;
  }

 private:
  int64_t added_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace txl::fleet
