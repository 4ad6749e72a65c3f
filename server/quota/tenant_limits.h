#pragma once

// What a tenant may take of the server, as the file of --tenants says it.

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace txl {

// Absent: no limit of its own.
struct TenantLimits {
  // Its share where tenants want more than there is, beside other weights.
  double weight = 1;
  std::optional<int64_t> turns;  // at a time, waiting ones included
  // SessionLimits (server/session/session_quota.h).
  std::optional<int64_t> sessions;
  std::optional<int64_t> bytes;
  std::optional<int64_t> tokens_in_per_minute;   // of prompts
  std::optional<int64_t> tokens_out_per_minute;  // handed to streams
  std::optional<int64_t> calls_per_second;
  std::optional<absl::Duration> longest_turn;  // its wait included
};

}  // namespace txl
