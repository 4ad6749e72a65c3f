#include "server/rpc/call_context.h"

#include <chrono>
#include <vector>

#include "server/api/convert_input.h"

namespace txl {
absl::Status CheckMetadata(const grpc::CallbackServerContext& context,
                           const std::string& session_id) {
  const auto& metadata = context.client_metadata();
  const auto [begin, end] = metadata.equal_range(kSessionMetadata);
  std::vector<std::string> values;
  for (auto it = begin; it != end; ++it) {
    values.emplace_back(it->second.data(), it->second.size());
  }
  return CheckSessionMetadata(values, session_id);
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
