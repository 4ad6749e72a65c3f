#pragma once

// Errors of calls: absl::Status with the server's google.rpc details attached,
// each under its type URL.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace grpc {
class ClientContext;
class Status;
}  // namespace grpc

namespace txl {

// What the server said beyond code and message.
struct CallError {
  std::string reason;  // of api.md, "SESSION_BUSY"; empty: none was sent
  std::map<std::string, std::string> metadata;  // of ErrorInfo
  std::vector<std::string> fields;              // named by BadRequest
  // When a retry makes sense, and how long to wait before it.
  std::optional<absl::Duration> retry_delay;
  // Id that finds the call in the logs of servers and proxies: 32 hex digits.
  // Empty: the call reached no server.
  std::string trace_id;
  std::string session_id;  // that the call named; empty: none
};

// Same code and message; details become payloads. Details that do not parse are
// dropped.
absl::Status FromGrpcStatus(const grpc::Status& status);
// FromGrpcStatus for a call that has ended; adds the trace returned for it.
absl::Status FromGrpcStatus(const grpc::Status& status,
                            const grpc::ClientContext& call);

// The error with the session that its call named; DescribeError says it.
absl::Status WithSession(absl::Status status, const std::string& session_id);
// The error with its details, and `what` before its message.
absl::Status About(absl::string_view what, const absl::Status& status);

CallError GetCallError(const absl::Status& status);

// "ABORTED (SESSION_BUSY): message; retry after 200ms; trace 4bf9...", with the
// fields before a message that does not name them, and of reasons SESSION_…
// the session: for people.
std::string DescribeError(const absl::Status& status);

}  // namespace txl
