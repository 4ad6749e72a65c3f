#pragma once

// The common path of every turn: lease, position, submit.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/rpc/call_record.h"
#include "server/rpc/convert_input.h"
#include "server/rpc/service_context.h"
#include "server/rpc/unary_turn.h"

namespace txl {

// A lease on the named session, or on a temporary one when the id is empty.
// `check` sees the session's position; a temporary session is made only after
// it is content.
absl::StatusOr<SessionLease> CheckedLease(
    const ServiceContext& service, const std::string& session_id,
    absl::FunctionRef<absl::Status(int64_t position)> check);

// Runs checked input as a kAppend or kScore turn. The answer comes through the
// reactor; a refusal (busy, queue full, ...) too.
absl::StatusOr<grpc::ServerUnaryReactor*> SubmitFeed(
    const ServiceContext& service, TurnKind kind, FeedParams params,
    grpc::ByteBuffer* response, UnaryTurnOptions options);

}  // namespace txl
