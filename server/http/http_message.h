#pragma once

// One HTTP request and its answer, as the handlers see them: plain values
// without the library that reads and writes them.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/access/caller.h"
#include "server/tls/peer_certificate.h"
#include "server/trace/trace_context.h"

namespace txl {

// Nobody who is known.
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
  // By which it is followed: the client's x-request-id, or one that was made,
  // and the span of its first call.
  std::string request_id;
  TraceContext trace;

  // The value of a header, "" where there is none.
  const std::string& header(const std::string& lower_case_name) const;
};

// "Fri, 27 Nov 2026 06:32:01 GMT", as every answer says it (RFC 9110, 6.6.1).
std::string HttpDate(absl::Time now);

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  // Own fields beside those of every answer. Values never come from a client
  // unchecked: a line break in one would be a header more.
  std::vector<std::pair<std::string, std::string>> headers;
  absl::Status error;  // what it says, where that is one
};

}  // namespace txl
