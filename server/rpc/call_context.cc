#include "server/rpc/call_context.h"

#include <chrono>
#include <vector>

#include "server/api/convert_input.h"

namespace txl {
namespace {

std::vector<std::string> ValuesOf(const grpc::CallbackServerContext& context,
                                  const char* name) {
  const auto [begin, end] = context.client_metadata().equal_range(name);
  std::vector<std::string> values;
  for (auto it = begin; it != end; ++it) {
    values.emplace_back(it->second.data(), it->second.size());
  }
  return values;
}

}  // namespace

absl::Status CheckMetadata(const grpc::CallbackServerContext& context,
                           const std::string& session_id) {
  return CheckSessionMetadata(ValuesOf(context, kSessionMetadata), session_id);
}

Credentials CallCredentials(const grpc::CallbackServerContext& context) {
  return {ValuesOf(context, "authorization")};
}

std::optional<absl::Duration> CallDeadline(
    const grpc::CallbackServerContext& context, Clock* clock) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) {
    return std::nullopt;
  }
  return clock->Monotonic() +
         absl::FromChrono(deadline - std::chrono::system_clock::now());
}

gpr_timespec InTime(absl::Duration after) {
  return gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_nanos(absl::ToInt64Nanoseconds(after), GPR_TIMESPAN));
}

}  // namespace txl
