#include "server/session/session_quota.h"

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/session/session_record.h"
#include "server/session/token_sequence.h"

namespace txl {
namespace {

// `more` of what a quota limits, >= 0. No time to retry: nobody knows when
// sessions end.
absl::Status Check(absl::string_view quota, const std::optional<int64_t>& limit,
                   int64_t held, int64_t more) {
  // Written as a difference: a sum could overflow.
  if (!limit.has_value() || more == 0 || more <= *limit - held) {
    return absl::OkStatus();
  }
  ErrorDetails details;
  details.metadata["held"] = absl::StrCat(held);
  details.metadata["allowed"] = absl::StrCat(*limit);
  return QuotaError(quota,
                    absl::StrCat(*limit, ": its sessions hold ", held, ", and ",
                                 more, " more were asked for"),
                    std::move(details));
}

}  // namespace

int64_t SessionQuota::BytesOf(int64_t tokens) const {
  return kSessionRecordBytes + TokenSequence::BytesFor(tokens) +
         (tokens > 1 ? bytes_per_slot_ : 0);
}

absl::Status SessionQuota::MayAdd(const std::string& tenant, int64_t tokens) {
  return MayTake(tenant, 1, BytesOf(tokens));
}

absl::Status SessionQuota::MayGrow(const std::string& tenant, int64_t from,
                                   int64_t to) {
  if (to <= from) return absl::OkStatus();
  return MayTake(tenant, 0, BytesOf(to) - BytesOf(from));
}

absl::Status SessionQuota::MayTake(const std::string& tenant, int64_t sessions,
                                   int64_t bytes) {
  if (!counts()) return absl::OkStatus();
  const SessionLimits limits = limits_of_(tenant);
  SessionUse& use = uses_[tenant];
  absl::Status status =
      Check("sessions", limits.sessions, use.sessions, sessions);
  if (status.ok()) status = Check("bytes", limits.bytes, use.bytes, bytes);
  if (!status.ok()) ++use.refused;
  return status;
}

void SessionQuota::Add(const std::string& tenant, int64_t tokens) {
  Take(tenant, 1, BytesOf(tokens));
}

void SessionQuota::Change(const std::string& tenant, int64_t from, int64_t to) {
  Take(tenant, 0, BytesOf(to) - BytesOf(from));
}

void SessionQuota::Remove(const std::string& tenant, int64_t tokens) {
  Take(tenant, -1, -BytesOf(tokens));
}

void SessionQuota::Take(const std::string& tenant, int64_t sessions,
                        int64_t bytes) {
  if (!counts()) return;
  SessionUse& use = uses_[tenant];
  use.sessions += sessions;
  use.bytes += bytes;
}

}  // namespace txl
