#pragma once

// One request and the sending of its answer: a whole one, or a stream of
// pieces.

#include <cstdint>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "server/http/http_message.h"

namespace txl {

// Used from the front's one thread, but for Post. Either Reply is called, once,
// or StartStream, any number of Sends, one after the other, and EndStream.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const HttpRequest& request() const = 0;
  // Of the next call that the request makes: its own span, then those below.
  TraceContext NextTrace() {
    const TraceContext& own = request().trace;
    return calls_++ == 0 ? own : SpanBelow(own);
  }
  bool has_calls() const { return calls_ > 0; }

  virtual void Reply(HttpReply reply) = 0;
  // Sends the head of `head`; its body is not used.
  virtual void StartStream(HttpReply head) = 0;
  // Calls `sent` when the bytes are with the kernel (true) or the client is
  // gone, never before Send returns.
  virtual void Send(std::string bytes, std::function<void(bool)> sent) = 0;
  // `last` and the end, so that both are in one packet: a client that has read
  // the last event and finds no end drops the connection.
  virtual void EndStream(std::string last) = 0;
  // Cuts the client off, whatever it has not read. The end is still due.
  virtual void Cut() = 0;

  // Calls `left` once if the client leaves before the answer is sent.
  virtual void OnLeave(std::function<void()> left) = 0;

  // Thread-safe. Runs `task` on the front's thread, never at once.
  virtual void Post(std::function<void()> task) = 0;
  // Runs `task` after so long.
  virtual void After(absl::Duration delay, std::function<void()> task) = 0;

 private:
  int64_t calls_ = 0;
};

}  // namespace txl
