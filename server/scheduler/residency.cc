#include "server/scheduler/residency.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "server/scheduler/turn_errors.h"

namespace txl {
namespace {

// Rows of a session between turns: its tokens but the last.
int64_t CommittedRows(const SessionLease& lease) {
  return std::max<int64_t>(lease.position() - 1, 0);
}

template <typename T>
bool IsReady(const std::future<T>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

bool Placement::arriving() const { return import.valid() && !IsReady(import); }

bool Entrance::ready() const { return !save.valid() || IsReady(save); }

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

SlotCandidates Residency::CandidatesFor(const SessionLease& lease) const {
  return table_.CandidatesFor(lease.key(), clock_->Monotonic());
}

Entrance Residency::Approach(const SlotChoice& choice,
                             const SessionLease& lease,
                             int64_t rows_before_commit) {
  Entrance entrance;
  entrance.choice = choice;
  if (choice.kind == SlotChoice::Kind::kFree) return entrance;
  const SlotEntry& entry = table_.at(choice.slot);
  switch (choice.kind) {
    case SlotChoice::Kind::kResident: {
      table_.Occupy(choice.slot, /*leaving=*/false);
      const int64_t rows = CommittedRows(lease);
      if (rows_before_commit > runner_->info().spare_rows && rows > 0 &&
          !entry.image_current) {
        entrance.save = runner_->Export(choice.slot, rows);
      }
      break;
    }
    case SlotChoice::Kind::kEvict:
      table_.Occupy(choice.slot, /*leaving=*/true);
      if (!entry.image_current) {
        entrance.save = runner_->Export(choice.slot, entry.rows);
      }
      break;
    default:
      break;
  }
  return entrance;
}

absl::StatusOr<Placement> Residency::Enter(Entrance entrance,
                                           const SessionLease& lease) {
  const int32_t slot = entrance.choice.slot;
  if (entrance.save.valid()) {
    if (absl::Status status = Save(entrance); !status.ok()) {
      TurnAway(entrance);
      return status;
    }
  }
  if (entrance.choice.kind == SlotChoice::Kind::kEvict) MoveOut(slot);
  if (entrance.choice.kind != SlotChoice::Kind::kResident) {
    return MoveIn(slot, lease);
  }
  Placement placement;
  placement.slot = slot;
  placement.entered = clock_->Monotonic();
  return placement;
}

void Residency::TurnAway(const Entrance& entrance) {
  if (entrance.choice.kind == SlotChoice::Kind::kFree) return;
  table_.Vacate(entrance.choice.slot);
  PublishUse();
}

void Residency::Committed(const Placement& placement) {
  if (placement.slot < 0) return;
  const SlotEntry& entry = table_.at(placement.slot);
  if (!entry.image_current) return;
  table_.SetImageCurrent(placement.slot, false);
  store_->DropImage(*entry.key);
}

void Residency::Leave(const Placement& placement, const SessionLease& lease,
                      bool intact, absl::Duration last_use) {
  if (placement.slot < 0) return;
  const int64_t rows = CommittedRows(lease);
  if (intact && rows > 0) {
    table_.Leave(placement.slot, rows, last_use);
  } else {
    table_.Free(placement.slot);
  }
  PublishUse();
}

void Residency::DropBadImage(const SessionLease& lease) {
  store_->DropImage(lease.key());
}

// Of the session that is in the slot: the one that moves out, or the turn's.
absl::Status Residency::Save(Entrance& entrance) {
  const SlotEntry& entry = table_.at(entrance.choice.slot);
  absl::StatusOr<StateImage> image = entrance.save.get();
  absl::Status status = image.ok()
                            ? store_->PutImage(*entry.key, *std::move(image))
                            : image.status();
  if (status.ok()) {
    table_.SetImageCurrent(entrance.choice.slot, true);
    return status;
  }
  // Without memory, the budget's or the machine's, the tokens have to do.
  if (absl::IsResourceExhausted(status)) return absl::OkStatus();
  // A session that ended just now needs no image.
  const bool ended = entry.leaving && !store_->GetKeyState(*entry.key).exists;
  return ended ? absl::OkStatus()
               : StepFailed("the session's state could not be saved", status);
}

void Residency::MoveOut(int32_t slot) {
  const double idle =
      absl::ToDoubleSeconds(clock_->Monotonic() - table_.at(slot).last_use);
  table_.Free(slot);
  metrics_->Update([idle](Snapshot& s) {
    ++s.sessions_moved_out;
    s.distributions.idle_before_evict_seconds.Observe(idle);
  });
  PublishUse();
}

Placement Residency::MoveIn(int32_t slot, const SessionLease& lease) {
  Placement placement;
  placement.slot = slot;
  placement.entered = clock_->Monotonic();
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
  placement.import = runner_->Import(slot, image);
  if (runner_->info().derives) {
    placement.rows_to_derive = placement.rows_underived = image->rows;
  }
  table_.SetImageCurrent(slot, true);
  metrics_->Update([](Snapshot& s) { ++s.sessions_moved_in; });
  return placement;
}

void Residency::PublishUse() {
  const int64_t used = table_.used();
  metrics_->Update([used](Snapshot& s) { s.slots_used = used; });
}

}  // namespace txl
