#pragma once

// What tenants may keep as sessions, and what they keep.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace txl {

// Absent: no limit of its own.
struct SessionLimits {
  std::optional<int64_t> sessions;
  std::optional<int64_t> bytes;  // SessionQuota::BytesOf, over all of them
};

// Gives the limits of a tenant.
using SessionLimitsOf = std::function<SessionLimits(const std::string& tenant)>;

// A tenant's sessions together, those that are only stored included.
struct SessionUse {
  int64_t sessions = 0;
  int64_t bytes = 0;
  int64_t refused = 0;  // how often one was, by their limits
};

// Not thread-safe. Where the limits have become smaller than what is there, it
// stays, and what would be more is refused.
class SessionQuota {
 public:
  // `limits_of` null: nothing is limited, and nothing is counted.
  SessionQuota(SessionLimitsOf limits_of, int64_t bytes_per_slot)
      : limits_of_(std::move(limits_of)), bytes_per_slot_(bytes_per_slot) {}

  bool counts() const { return limits_of_ != nullptr; }

  // Host bytes that a session of so many tokens is counted with, wherever it
  // lies and whatever it shares: its record, its ids and, from the second token
  // on, its segment memory. Never less for more tokens.
  int64_t BytesOf(int64_t tokens) const;

  // Whether the tenant may have one more session of so many tokens, and whether
  // one may hold `to` tokens instead of `from`. RESOURCE_EXHAUSTED QUOTA with
  // `quota` ("sessions", "bytes"), `held` and `allowed` in the metadata.
  absl::Status MayAdd(const std::string& tenant, int64_t tokens);
  absl::Status MayGrow(const std::string& tenant, int64_t from, int64_t to);

  // What has come to be, limits or not.
  void Add(const std::string& tenant, int64_t tokens);
  void Change(const std::string& tenant, int64_t from, int64_t to);
  void Remove(const std::string& tenant, int64_t tokens);

  // Every tenant that has been named.
  const std::map<std::string, SessionUse>& uses() const { return uses_; }

 private:
  absl::Status MayTake(const std::string& tenant, int64_t sessions,
                       int64_t bytes);
  void Take(const std::string& tenant, int64_t sessions, int64_t bytes);

  const SessionLimitsOf limits_of_;
  const int64_t bytes_per_slot_;
  std::map<std::string, SessionUse> uses_;
};

}  // namespace txl
