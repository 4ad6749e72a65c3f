#include "server/scheduler/residency.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "server/scheduler/turn_errors.h"

namespace txl {
namespace {

// Rows of a session between turns: its tokens but the last.
int64_t CommittedRows(const SessionLease& lease) {
  return std::max<int64_t>(lease.position() - 1, 0);
}

}  // namespace

Residency::Residency(StepRunner* runner, SessionStore* store, Metrics* metrics,
                     Clock* clock)
    : runner_(runner),
      store_(store),
      metrics_(metrics),
      clock_(clock),
      table_(runner->info().slots) {
  metrics_->Update(
      [this](Snapshot& s) { s.slots_total = runner_->info().slots; });
}

void Residency::DropEnded() {
  const std::vector<uint64_t> ended = store_->TakeEndedKeys();
  if (ended.empty()) return;
  for (uint64_t key : ended) table_.EndSession(key);
  PublishUse();
}

std::vector<SlotView> Residency::Views() const {
  const absl::Duration now = clock_->Monotonic();
  std::vector<SlotView> views;
  views.reserve(table_.entries().size());
  for (const SlotEntry& entry : table_.entries()) {
    SlotView view;
    view.key = entry.key;
    view.running = entry.running;
    if (entry.key.has_value() && !entry.running) {
      const SessionStore::KeyState state = store_->GetKeyState(*entry.key);
      if (!state.exists) view.key.reset();
      // A session whose next turn waits in the queue is BUSY, its slot is not.
      view.idle = state.busy ? now - entry.last_use : state.idle;
    }
    views.push_back(view);
  }
  return views;
}

absl::StatusOr<Placement> Residency::Enter(const SlotChoice& choice,
                                           const SessionLease& lease,
                                           int64_t rows_before_commit) {
  Placement placement;
  placement.slot = choice.slot;
  if (choice.kind == SlotChoice::Kind::kResident) {
    table_.at(choice.slot).running = true;
  } else {
    if (choice.kind == SlotChoice::Kind::kEvict) {
      if (absl::Status status = MoveOut(choice.slot); !status.ok()) {
        return status;
      }
    }
    placement = MoveIn(choice.slot, lease);
  }
  SlotEntry& entry = table_.at(choice.slot);
  const int64_t rows = CommittedRows(lease);
  const bool save = rows_before_commit > runner_->info().spare_rows &&
                    rows > 0 && !entry.image_current && !placement.rebuild;
  if (save) {
    if (absl::Status status = Save(choice.slot, lease.key(), rows);
        !status.ok()) {
      table_.Leave(choice.slot, rows, clock_->Monotonic());
      return status;
    }
    entry.image_current = true;
  }
  return placement;
}

void Residency::Committed(const Placement& placement) {
  if (placement.slot < 0) return;
  SlotEntry& entry = table_.at(placement.slot);
  if (!entry.image_current) return;
  entry.image_current = false;
  store_->DropImage(*entry.key);
}

void Residency::Leave(const Placement& placement, const SessionLease& lease,
                      bool intact) {
  if (placement.slot < 0) return;
  const int64_t rows = CommittedRows(lease);
  if (intact && rows > 0) {
    table_.Leave(placement.slot, rows, clock_->Monotonic());
  } else {
    table_.Free(placement.slot);
  }
  PublishUse();
}

void Residency::DropBadImage(const SessionLease& lease) {
  store_->DropImage(lease.key());
}

absl::Status Residency::Save(int32_t slot, uint64_t key, int64_t rows) {
  absl::StatusOr<StateImage> image = runner_->Export(slot, rows).get();
  if (!image.ok()) {
    return StepFailed("the session's state could not be saved", image.status());
  }
  return store_->PutImage(key, *std::move(image));
}

absl::Status Residency::MoveOut(int32_t slot) {
  SlotEntry& entry = table_.at(slot);
  if (!entry.image_current) {
    absl::Status status = Save(slot, *entry.key, entry.rows);
    // A session that ended just now needs no image.
    if (!status.ok() && store_->GetKeyState(*entry.key).exists) return status;
  }
  const double idle =
      absl::ToDoubleSeconds(clock_->Monotonic() - entry.last_use);
  table_.Free(slot);
  metrics_->Update([idle](Snapshot& s) {
    ++s.sessions_moved_out;
    s.distributions.idle_before_evict_seconds.Observe(idle);
  });
  PublishUse();
  return absl::OkStatus();
}

Placement Residency::MoveIn(int32_t slot, const SessionLease& lease) {
  Placement placement;
  placement.slot = slot;
  // The slot of a session that ended may not have been freed yet.
  table_.Free(slot);
  table_.Assign(slot, lease.key());
  PublishUse();
  const std::shared_ptr<const StateImage> image = store_->GetImage(lease.key());
  const int64_t rows = CommittedRows(lease);
  if (image == nullptr || image->position != rows) {
    if (image != nullptr) store_->DropImage(lease.key());
    runner_->Clear(slot);
    placement.rebuild = rows > 0;
    return placement;
  }
  placement.import = runner_->Import(slot, *image);
  if (runner_->info().derives) placement.rows_to_derive = image->rows;
  table_.at(slot).image_current = true;
  metrics_->Update([](Snapshot& s) { ++s.sessions_moved_in; });
  return placement;
}

void Residency::PublishUse() {
  const int64_t used = table_.used();
  metrics_->Update([used](Snapshot& s) { s.slots_used = used; });
}

}  // namespace txl
