#pragma once

// What a method reads from and writes to gRPC's context of its call.

#include <grpc/support/time.h>
#include <grpcpp/server_context.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/rpc/call_record.h"
#include "server/scheduler/turn.h"

namespace txl {

// Metadata that carries the session id in both directions, for proxies that
// route by it.
inline constexpr char kSessionMetadata[] = "x-txl-session";

// Checks the client's metadata against the request's field.
absl::Status CheckMetadata(const grpc::CallbackServerContext& context,
                           const std::string& session_id);

// The call's deadline on Clock::Monotonic; absent: none.
std::optional<absl::Duration> CallDeadline(
    const grpc::CallbackServerContext& context, Clock* clock);

// `after` from now, for gRPC, whatever becomes of the wall clock meanwhile.
gpr_timespec InTime(absl::Duration after);

// Why gRPC cancelled the call: its deadline has passed, or the client left.
CancelToken::Why CancelReason(std::optional<absl::Duration> deadline,
                              Clock* clock);

// Tells the turn of a call that gRPC has cancelled.
void CancelTurn(const CallRecord& record,
                std::optional<absl::Duration> deadline, CancelToken* cancel);

}  // namespace txl
