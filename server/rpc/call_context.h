#pragma once

// What a method reads from and writes to gRPC's context of its call.

#include <grpc/support/time.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/access/key_ring.h"
#include "server/api/api_call.h"
#include "server/base/clock.h"
#include "server/tls/peer_certificate.h"

namespace txl {

// Metadata that carries the session id in both directions, for proxies that
// route by it.
inline constexpr char kSessionMetadata[] = "x-txl-session";

// Checks the client's metadata against the request's field.
absl::Status CheckMetadata(const grpc::CallbackServerContext& context,
                           const std::string& session_id);

// Who calls, and the trace that the call is a part of: its own or, where it has
// none, one that is made (trace_context.h has `rate`).
CallOrigin OriginOf(const grpc::CallbackServerContext& context, double rate);

// What the client says of who it is.
Credentials CallCredentials(const grpc::CallbackServerContext& context);

// The call's deadline on Clock::Monotonic; absent: none.
std::optional<absl::Duration> CallDeadline(
    const grpc::CallbackServerContext& context, Clock* clock);

// Certificate of the client whose connection the call came by. Absent: clients
// need not present one.
std::optional<PeerCertificate> PeerCertificateOf(
    const grpc::ServerContextBase& context);

// `after` from now, for gRPC, whatever becomes of the wall clock meanwhile.
gpr_timespec InTime(absl::Duration after);

// The only place where errors become gRPC's: canonical code, the text that is
// shown and google.rpc details (ErrorInfo always; BadRequest when a field is
// named; RetryInfo when a retry makes sense).

// The domain of every ErrorInfo.
inline constexpr char kErrorDomain[] = "txl.v1";

grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace txl
