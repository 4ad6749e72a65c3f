#pragma once

// One HTTP request and its answer, as the handlers see them: plain values
// without the library that reads and writes them.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/access/role.h"
#include "server/base/byte_budget.h"
#include "server/tls/peer_certificate.h"
#include "server/trace/trace_context.h"

namespace txl {

// A caller who is not known.
inline const Caller kStranger = {"", "", Role::kUser};

struct HttpRequest {
  std::string method;  // "GET", as sent
  std::string path;    // percent-decoded, without the query
  // Decoded, in their order; a parameter without a value has "".
  std::vector<std::pair<std::string, std::string>> query;
  // Lower-case names; a field that came twice has its last value.
  std::map<std::string, std::string> headers;
  std::string body;
  std::string peer;  // "http:127.0.0.1:4711"
  // The client's; absent where clients need none.
  std::optional<PeerCertificate> certificate;
  Caller caller = kStranger;  // who was let in, where that is asked
  // Id and span of the request: the client's x-request-id or a generated one,
  // and the span of its first call.
  std::string request_id;
  TraceContext trace;

  // The value of a header, "" where there is none.
  const std::string& header(const std::string& lower_case_name) const {
    static const std::string kNone;
    const auto found = headers.find(lower_case_name);
    return found == headers.end() ? kNone : found->second;
  }
};

// "Fri, 27 Nov 2026 06:32:01 GMT", as every answer says it (RFC 9110, 6.6.1).
inline std::string HttpDate(absl::Time now) {
  return absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", now,
                          absl::UTCTimeZone());
}

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  // Own fields beside those of every answer. Values never come from a client
  // unchecked: a line break in one would be a header more.
  std::vector<std::pair<std::string, std::string>> headers;
  absl::Status error;  // what it says, where that is one
};

// One request and the sending of its answer: a whole one, or a stream of
// pieces.

// Used from the front's one thread, but for Post. Either Reply is called, once,
// or StartStream, any number of Sends, one after the other, and EndStream.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const HttpRequest& request() const = 0;
  // Trace of the request's next call: first its own span, then children.
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

// What the front's transport asks of those who answer.

struct HttpHandlers {
  // Whether the caller may make the request, from the head alone, before room
  // is taken for a body. Sets the head's `caller` as far as it is known.
  // `authorization`: every such field. An error is the answer.
  std::function<absl::Status(HttpRequest* head,
                             const std::vector<std::string>& authorization)>
      let_in;
  // Hears of the errors that are answered without a call of the API, which
  // would be recorded by itself. May be null.
  std::function<void(const HttpRequest&, const absl::Status&)> refused;
  // Called on the front's thread with every request that may be handled.
  std::function<void(std::shared_ptr<Exchange>)> handle;
  // Room for a body of so many bytes and what is made of it, before it is read.
  std::function<absl::StatusOr<ByteHold>(int64_t bytes)> hold_body;
};

}  // namespace txl
