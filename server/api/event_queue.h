#pragma once

// What a stream has taken from the scheduler and not yet given to gRPC, in
// order. The tokens among it are counted in the server's metrics.

#include <cstddef>
#include <deque>
#include <variant>

#include "server/metrics/metrics.h"
#include "server/scheduler/token_sink.h"

namespace txl {

using StreamEvent = std::variant<TurnStarted, TokenEvent, TurnFinished>;

// Thread-compatible.
class EventQueue {
 public:
  // `metrics` outlives the queue.
  explicit EventQueue(Metrics* metrics) : metrics_(metrics) {}
  ~EventQueue() { Clear(); }
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  void Push(StreamEvent event);
  // The oldest event. REQUIRES: not empty.
  StreamEvent Pop();
  void Clear();

  bool empty() const { return events_.empty(); }
  size_t size() const { return events_.size(); }
  // Whether the oldest event is one.
  bool token_is_next() const {
    return !events_.empty() && IsToken(events_.front());
  }

 private:
  static bool IsToken(const StreamEvent& event) {
    return std::holds_alternative<TokenEvent>(event);
  }

  Metrics* const metrics_;
  std::deque<StreamEvent> events_;
};

}  // namespace txl
