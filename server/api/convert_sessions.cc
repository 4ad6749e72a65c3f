#include "server/api/convert_sessions.h"

#include "model/base/status_macros.h"
#include "server/base/error.h"
#include "server/session/session_id.h"

namespace txl {

absl::Status CheckIdField(absl::string_view field, const std::string& id) {
  if (ValidateSessionId(id).ok()) return absl::OkStatus();
  return FieldError(field, "must be 1 to 64 of [A-Za-z0-9_-]");
}

absl::StatusOr<absl::Duration> ReadDuration(
    const google::protobuf::Duration& ttl) {
  // The range of google.protobuf.Duration; seconds and nanos of one sign.
  constexpr int64_t kMaxSeconds = 315'576'000'000;
  const bool mixed = (ttl.seconds() > 0 && ttl.nanos() < 0) ||
                     (ttl.seconds() < 0 && ttl.nanos() > 0);
  if (ttl.seconds() > kMaxSeconds || ttl.seconds() < -kMaxSeconds ||
      ttl.nanos() > 999'999'999 || ttl.nanos() < -999'999'999 || mixed) {
    return FieldError("ttl", "is no valid duration");
  }
  return absl::Seconds(ttl.seconds()) + absl::Nanoseconds(ttl.nanos());
}

absl::StatusOr<ForkRequest> ReadFork(const SessionName& session,
                                     const v1::ForkSessionRequest& request) {
  ForkRequest fork;
  if (!request.new_session_id().empty()) {
    TXL_RETURN_IF_ERROR(
        CheckIdField("new_session_id", request.new_session_id()));
  }
  if (!request.request_id().empty()) {
    TXL_RETURN_IF_ERROR(CheckIdField("request_id", request.request_id()));
  }
  if (request.has_ttl()) {
    TXL_ASSIGN_OR_RETURN(fork.ttl, ReadDuration(request.ttl()));
  }
  if (request.has_position()) {
    if (request.position() < 0) {
      return FieldError("position", "must not be negative");
    }
    fork.position = request.position();
  }
  fork.session = session;
  fork.new_session_id = request.new_session_id();
  fork.request_id = request.request_id();
  return fork;
}

absl::StatusOr<RewindRequest> ReadRewind(
    const SessionName& session, const v1::RewindSessionRequest& request) {
  RewindRequest rewind;
  if (!request.request_id().empty()) {
    TXL_RETURN_IF_ERROR(CheckIdField("request_id", request.request_id()));
  }
  // Absent is not 0, which would empty the session.
  if (!request.has_position()) return FieldError("position", "must be set");
  if (request.position() < 0) {
    return FieldError("position", "must not be negative");
  }
  if (request.has_expected_position()) {
    if (request.expected_position() < 0) {
      return FieldError("expected_position", "must not be negative");
    }
    rewind.expected_position = request.expected_position();
  }
  rewind.session = session;
  rewind.position = request.position();
  rewind.request_id = request.request_id();
  return rewind;
}

}  // namespace txl
