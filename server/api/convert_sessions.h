#pragma once

// Requests of SessionService that name two sessions or none -> checked native
// values. Pure, as convert_input.h. Ranges that only the store knows (a
// session's position, the time-to-live) it checks.

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "server/session/session_store.h"
#include "txl/v1/session_service.pb.h"

namespace txl {

// FIELD_INVALID ttl: it is no duration, whatever its range.
absl::StatusOr<absl::Duration> ReadDuration(
    const google::protobuf::Duration& ttl);

// `session`: the caller's, which the request names.
absl::StatusOr<ForkRequest> ReadFork(const SessionName& session,
                                     const v1::ForkSessionRequest& request);
absl::StatusOr<RewindRequest> ReadRewind(
    const SessionName& session, const v1::RewindSessionRequest& request);

// FIELD_INVALID `field` unless `id` is 1 to 64 of [A-Za-z0-9_-].
absl::Status CheckIdField(absl::string_view field, const std::string& id);

}  // namespace txl
