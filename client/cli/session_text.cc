#include "client/cli/session_text.h"

#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace txl::cli {
namespace {

std::string FormatTime(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S",
                          absl::FromUnixSeconds(time.seconds()),
                          absl::LocalTimeZone());
}

}  // namespace

std::string FormatSession(const v1::Session& session) {
  return absl::StrFormat(
      "%-24s %-5s %10d %12d  %s  %s\n", session.session_id(),
      session.state() == v1::SESSION_STATE_BUSY ? "busy" : "idle",
      session.position(), session.memory_bytes(),
      FormatTime(session.last_use_time()), FormatTime(session.expire_time()));
}

}  // namespace txl::cli
