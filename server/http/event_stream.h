#pragma once

// Server-sent events of one answer, as OpenAI's clients read them: `data:` and
// an empty line, nothing else; `id:` lines only where a client asked for them,
// for after one every empty line is an event to some parsers.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/http/exchange.h"

namespace txl {

struct EventStreamOptions {
  bool ids = false;  // number events from 1 on
  int64_t skip = 0;  // first events that the client has
  // A comment after so long a silence, not in streams with ids; 0: none.
  absl::Duration ping = absl::ZeroDuration();
  std::vector<std::pair<std::string, std::string>> headers;
};

class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  // Sends the head.
  static std::shared_ptr<EventStream> Start(std::shared_ptr<Exchange> exchange,
                                            EventStreamOptions options);

  // Sends an event; `sent` as Exchange::Send. `data` has no line break.
  void Send(const std::string& data, std::function<void(bool)> sent);
  // Sends `data`, if it is not empty, and "[DONE]", the end.
  void End(const std::string& data);
  // Sends `error` and the end. An error has no number and is never left out:
  // the event that it stands for is still to come, in another stream.
  void Fail(const std::string& error);

 private:
  EventStream(std::shared_ptr<Exchange> exchange,
              const EventStreamOptions& options);
  std::string Event(const std::string& data);
  void PingAfterSilence();

  const std::shared_ptr<Exchange> exchange_;
  const bool ids_;
  const int64_t skip_;
  const absl::Duration ping_;
  int64_t last_ = 0;
  bool ended_ = false;
};

}  // namespace txl
