// SessionStore: sessions that are stored and not in memory are counted, expire
// and are discarded.

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/session/session_store.h"
#include "server/session/session_store_impl.h"

namespace txl {
namespace {

// Stored sessions that are ended in one go.
constexpr int64_t kExpiredAtOnce = 256;
// Sessions that leave memory in one go.
constexpr int kAwayAtOnce = 1'000;

}  // namespace

void SessionStore::Impl::EndStored(const SessionName& name, int64_t position) {
  ended.Remember(name.text(), SessionEnd::kExpired);
  if (options.shared == nullptr) quota.Remove(name.tenant(), position);
  ExpireStored(name);
}

// A read shows what is on stable storage. A session that is not in memory has
// nothing that is not, unless it was removed.
bool SessionStore::Impl::IsOnlyStored(const SessionName& name) const {
  const auto found = removed.find(name);
  return by_name.count(name) == 0 && loading.count(name) == 0 &&
         (found == removed.end() || found->second <= DurableOf(name));
}

void SessionStore::DiscardStored(const SessionName& session,
                                 std::function<void()> done) {
  const auto held = std::make_shared<std::optional<int64_t>>();
  impl_->options.journal->Positions(
      session.text(),
      [held](const StoredPosition& stored) { *held = stored.position; },
      [this, session, held, done = std::move(done)](const absl::Status&) {
        {
          StoreLock lock(impl_.get());
          if (impl_->IsOnlyStored(session)) {
            // Nothing where its row cannot even be read.
            if (held->has_value() && impl_->options.shared == nullptr) {
              impl_->quota.Remove(session.tenant(), **held);
            }
            impl_->Unstore(session);
          }
        }
        done();
      });
}

void SessionStore::TidyStored() {
  SessionJournal* const journal = impl_->options.journal;
  if (journal == nullptr) return;
  for (int gone = 0; gone < kAwayAtOnce; ++gone) {
    StoreLock lock(impl_.get());
    if (!impl_->StoreOldestAway(impl_->options.store_away_after)) break;
  }
  {
    absl::MutexLock lock(&impl_->mutex);
    std::erase_if(impl_->removed, [this](const auto& each) {
      return each.second <= impl_->DurableOf(each.first);
    });
  }
  journal->ListExpired(
      impl_->clock->Now(), kExpiredAtOnce,
      [this](const absl::StatusOr<std::vector<StoredPosition>>& expired) {
        if (!expired.ok()) return;
        StoreLock lock(impl_.get());
        for (const StoredPosition& stored : *expired) {
          const SessionName name = SessionName::OfText(stored.session_id);
          // The time-to-live of one that is in memory is known better here.
          if (impl_->IsOnlyStored(name)) {
            impl_->EndStored(name, stored.position);
          }
        }
      });
}

absl::Status SessionStore::CountStored() {
  if (impl_->options.journal == nullptr || !impl_->options.limits_of ||
      impl_->options.shared != nullptr) {
    return absl::OkStatus();
  }
  absl::Notification told;
  absl::Status status;
  impl_->options.journal->Positions(
      "",
      [this](const StoredPosition& stored) {
        absl::MutexLock lock(&impl_->mutex);
        impl_->quota.Add(SessionName::OfText(stored.session_id).tenant(),
                         stored.position);
      },
      [&](const absl::Status& read) {
        status = read;
        told.Notify();
      });
  told.WaitForNotification();
  return status;
}

}  // namespace txl
