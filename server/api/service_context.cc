#include "server/api/service_context.h"

#include <map>

#include "server/base/log.h"

namespace txl {

MemoryUse CallMemory::Use() const {
  MemoryUse use = {.division = division};
  if (guard != nullptr) use.resident_bytes = guard->resident_bytes();
  use.shedding = Shedding();
  use.request_bytes = requests->used();
  use.requests_refused = requests->refused();
  use.stream_bytes = streams->used();
  use.streams_refused = streams->refused();
  return use;
}

namespace {

// What the session store counts by tenant, by place in Snapshot::tenants.
std::map<int32_t, SessionUse> ReadSessionUses(const ServiceContext& context) {
  std::map<int32_t, SessionUse> uses;
  if (context.tenants == nullptr) return uses;
  const absl::Duration now = context.clock->Monotonic();
  for (const auto& [tenant, use] : context.turns.sessions->tenant_uses()) {
    SessionUse& sum = uses[context.tenants->Find(tenant, now)->counts()];
    sum.sessions += use.sessions;
    sum.bytes += use.bytes;
    sum.refused += use.refused;
  }
  return uses;
}

}  // namespace

SessionLimitsOf LimitsOfTenants(Tenants* tenants, Clock* clock) {
  return [tenants, clock](const std::string& tenant) {
    const TenantLimits limits =
        tenants->Find(tenant, clock->Monotonic())->limits();
    return SessionLimits{limits.sessions, limits.bytes};
  };
}

ServerStatus ReadStatus(const ServiceContext& context) {
  ServerStatus status;
  status.phase = context.turns.lifecycle->phase();
  status.uptime = context.clock->Monotonic() - context.start;
  status.stall = context.turns.scheduler->StallTime();
  status.sessions = context.turns.sessions->counts();
  status.memory = context.memory.Use();
  status.self_test = context.turns.model.self_test;
  if (context.certificate) status.certificate = context.certificate();
  status.log_lines_dropped = LogLinesDropped();
  if (context.audit != nullptr) {
    status.audit_lines_lost = context.audit->lost();
  }
  if (context.spans != nullptr) status.span_lines_lost = context.spans->lost();
  status.work = context.turns.work->counts();
  status.store = context.turns.sessions.Use();
  const std::map<int32_t, SessionUse> uses = ReadSessionUses(context);
  status.snapshot = context.metrics->Get();  // has their places by now
  for (const auto& [place, use] : uses) {
    TenantCounts& counts = status.snapshot.tenants[static_cast<size_t>(place)];
    counts.sessions = use.sessions;
    counts.session_bytes = use.bytes;
    counts.refused += use.refused;
  }
  return status;
}

}  // namespace txl
