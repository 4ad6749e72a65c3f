#include "server/api/event_queue.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace txl {

void EventQueue::Push(StreamEvent event) {
  if (IsToken(event)) metrics_->AddStreamTokens(1);
  events_.push_back(std::move(event));
}

StreamEvent EventQueue::Pop() {
  StreamEvent event = std::move(events_.front());
  events_.pop_front();
  if (IsToken(event)) metrics_->AddStreamTokens(-1);
  return event;
}

void EventQueue::Clear() {
  if (events_.empty()) return;
  metrics_->AddStreamTokens(-static_cast<int64_t>(
      std::count_if(events_.begin(), events_.end(), IsToken)));
  events_.clear();
}

}  // namespace txl
