#include "server/api/service_context.h"

#include <map>
#include <utility>

#include "server/base/log.h"

namespace txl {

namespace {

MemoryUse ReadMemoryUse(const ServiceContext& context) {
  MemoryUse use;
  if (context.memory != nullptr) use.division = *context.memory;
  if (context.guard != nullptr) {
    use.resident_bytes = context.guard->resident_bytes();
    use.shedding = context.guard->Shedding();
  }
  if (context.requests != nullptr) {
    use.request_bytes = context.requests->used();
    use.requests_refused = context.requests->refused();
  }
  if (context.streams != nullptr) {
    use.stream_bytes = context.streams->used();
    use.streams_refused = context.streams->refused();
  }
  return use;
}

StoreUse ReadStoreUse(const ServiceContext& context) {
  const JournalStatus journal = context.journal->status();
  StoreUse use;
  use.durability = context.tokens_wait ? "token" : "turn";
  if (context.store_late) use.durability += ", up to 2 s";
  use.state = journal.failed ? "failed" : journal.full ? "full" : "serving";
  if (context.shared != nullptr && !journal.full &&
      context.shared->LongestSilence() >= kStoreSilence) {
    use.state = "unreachable";
  }
  use.sessions = journal.sessions;
  use.database_bytes = journal.bytes;
  if (context.images != nullptr) use.image_bytes = context.images->Bytes();
  use.tokens_waiting = journal.tokens_waiting;
  use.tokens_written = journal.tokens_written;
  use.limit_bytes = journal.limit_bytes;
  use.commits = journal.commits;
  use.commit_seconds = journal.commit_seconds;
  use.acquired = journal.acquired;
  use.taken_over = journal.taken_over;
  use.fenced = journal.fenced;
  use.busy = journal.busy;
  use.tokens_lost = journal.tokens_lost;
  return use;
}

// What the session store counts by tenant, by place in Snapshot::tenants.
std::map<int32_t, SessionUse> ReadSessionUses(const ServiceContext& context) {
  std::map<int32_t, SessionUse> uses;
  if (context.tenants == nullptr) return uses;
  const absl::Duration now = context.clock->Monotonic();
  for (const auto& [tenant, use] : context.store->tenant_uses()) {
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

void WithSession(const ServiceContext& context, const SessionName& session,
                 std::function<void(const absl::Status&)> then, bool acquires) {
  if (!context.store->MayBeStored(session, acquires))
    return then(absl::OkStatus());
  context.store->Prepare(session,
                         [callbacks = context.callbacks,
                          then = std::move(then)](const absl::Status& status) {
                           callbacks->Run([then, status] { then(status); });
                         });
}

void EndNamed(const ServiceContext& context, const SessionName& session,
              std::function<void(const absl::StatusOr<bool>&)> then) {
  WithSession(
      context, session,
      [&context, session, then = std::move(then)](const absl::Status& found) {
        if (absl::IsDataLoss(found) || absl::IsFailedPrecondition(found)) {
          return context.store->DiscardStored(
              session, [callbacks = context.callbacks, then] {
                callbacks->Run([then] { then(false); });
              });
        }
        absl::Status status = found;
        if (status.ok()) status = context.store->Delete(session);
        if (!status.ok()) return then(status);
        context.scheduler->Wake();
        then(true);
      });
}

void WhenStored(const ServiceContext& context, const SessionName& session,
                std::function<void(const absl::Status&)> then) {
  if (context.journal == nullptr) return then(absl::OkStatus());
  SessionJournal* const journal = context.journal->Of(session.text());
  journal->WhenDurable(journal->last_entry(),
                       [callbacks = context.callbacks,
                        then = std::move(then)](absl::Status status) {
                         callbacks->Run([then, status] { then(status); });
                       });
}

void WhenChanged(const ServiceContext& context, const SessionName& session,
                 std::function<void(const absl::Status&)> then) {
  WhenStored(context, session,
             [shared = context.shared, session,
              then = std::move(then)](const absl::Status& stored) {
               const bool refusable = stored.ok() && shared != nullptr;
               then(refusable ? shared->TakeRefusal(session.text()) : stored);
             });
}

std::shared_ptr<TokenSink> StoredSink(const ServiceContext& context,
                                      const SessionLease& lease,
                                      std::shared_ptr<TokenSink> sink,
                                      std::shared_ptr<CancelToken> cancel) {
  if (context.journal == nullptr) return sink;
  DurableSinkOptions options;
  options.journal = context.journal->Of(lease.name().text());
  options.claim = lease.claim();
  options.most_silence = context.most_silence;
  options.tokens_wait = context.tokens_wait;
  options.most_lag = context.journal_lag;
  options.park_events = context.scheduler_options.park_events;
  options.wake = [scheduler = context.scheduler] { scheduler->Wake(); };
  return std::make_shared<DurableSink>(std::move(options), std::move(sink),
                                       std::move(cancel));
}

ServerStatus ReadStatus(const ServiceContext& context) {
  ServerStatus status;
  status.phase = context.lifecycle->phase();
  status.uptime = context.clock->Monotonic() - context.start;
  status.stall = context.scheduler->StallTime();
  status.sessions = context.store->counts();
  status.memory = ReadMemoryUse(context);
  status.self_test = context.self_test;
  if (context.certificate) status.certificate = context.certificate();
  status.log_lines_dropped = LogLinesDropped();
  if (context.audit != nullptr) {
    status.audit_lines_lost = context.audit->lost();
  }
  if (context.spans != nullptr) status.span_lines_lost = context.spans->lost();
  if (context.work != nullptr) status.work = context.work->counts();
  if (context.journal != nullptr) {
    status.store = ReadStoreUse(context);
  }
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
