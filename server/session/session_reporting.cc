// SessionStore: what it tells of itself.

#include "server/session/session_report.h"
#include "server/session/session_store_impl.h"

namespace txl {

SessionReport SessionStore::Impl::ReportOf(const SessionRecord& record) const {
  const SessionInfo info = Info(record);
  SessionReport report;
  report.key = record.key;
  report.name = record.name;
  report.busy = record.busy;
  report.position = info.position;
  report.durable_position = info.durable_position;
  report.image_rows = record.image_rows;
  report.has_image = record.image != nullptr;
  report.idle = clock->Monotonic() - record.last_use;
  report.last_outcome = record.last_turn.outcome;
  return report;
}

StoreReport SessionStore::Report(size_t most) const {
  StoreReport report;
  absl::MutexLock lock(&impl_->mutex);
  report.named = static_cast<int64_t>(impl_->by_name.size());
  report.temporary = impl_->temporary_count;
  report.deleted = static_cast<int64_t>(impl_->by_key.size()) - report.named -
                   report.temporary;
  report.empty = static_cast<int64_t>(impl_->empty_idle.size());
  report.away = static_cast<int64_t>(impl_->away_idle.size());
  report.in_slot = static_cast<int64_t>(impl_->in_slot.size());
  for (const uint64_t key : impl_->in_slot) {
    if (report.sessions.size() == most) break;
    report.sessions.push_back(impl_->ReportOf(*impl_->by_key.at(key)));
  }
  return report;
}

}  // namespace txl
