#include "server/exporter/store_families.h"

#include <utility>

namespace txl {
namespace {

double Value(int64_t count) { return static_cast<double>(count); }

}  // namespace

void AddStoreFamilies(const ServerStatus& status, FamilyList& out) {
  const bool stored = status.store.has_value();
  const StoreUse store = status.store.value_or(StoreUse());
  const auto sample = [stored](FamilyRef family, int64_t value) {
    if (stored) family.Sample(Value(value));
  };
  FamilyRef state = out.Gauge("txl_store_state", "1 for the store's state");
  for (const char* name : {"serving", "full", "failed", "unreachable"}) {
    if (stored) state.Sample(store.state == name ? 1 : 0, {{"state", name}});
  }
  FamilyRef bytes = out.Gauge("txl_store_bytes", "Bytes of the store's files");
  if (stored) {
    bytes.Sample(Value(store.database_bytes), {{"kind", "database"}})
        .Sample(Value(store.image_bytes), {{"kind", "images"}});
  }
  FamilyRef seconds =
      out.Histograms("txl_store_commit_seconds", "Time of a commit");
  if (stored) seconds.Sample(store.commit_seconds);
  sample(out.Gauge("txl_store_limit_bytes",
                   "Bytes that its database may take; 0: no limit"),
         store.limit_bytes);
  sample(out.Gauge("txl_store_sessions", "Sessions stored"), store.sessions);
  sample(out.Gauge("txl_store_lag_tokens",
                   "Tokens that are not on stable storage yet"),
         store.tokens_waiting);
  sample(out.Counter("txl_store_tokens_total", "Tokens on stable storage"),
         store.tokens_written);
  sample(out.Counter("txl_store_commits_total", "Commits of the store"),
         store.commits);
  FamilyRef ownership =
      out.Counter("txl_ownership_total", "Sessions shared with other servers");
  for (const auto& [event, count] :
       {std::pair("acquired", store.acquired),
        std::pair("taken_over", store.taken_over),
        std::pair("fenced", store.fenced), std::pair("busy", store.busy)}) {
    if (stored) ownership.Sample(Value(count), {{"event", event}});
  }
  sample(out.Counter("txl_store_lost_tokens_total",
                     "Tokens that the store had confirmed and has no more"),
         store.tokens_lost);
  sample(out.Counter("txl_sessions_loaded_total",
                     "Sessions that came from the store into memory"),
         status.sessions.loaded);
  sample(out.Counter("txl_sessions_stored_away_total",
                     "Sessions that left memory for the store"),
         status.sessions.stored_away);
}

}  // namespace txl
