// SessionStore's state images, found by lease key.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/session/session_errors.h"
#include "server/session/session_store.h"
#include "server/session/session_store_impl.h"

namespace txl {

absl::Status SessionStore::PutImage(uint64_t key, StateImage image) {
  const auto shared = std::make_shared<const StateImage>(std::move(image));
  std::string kept_as;
  TokenSlice ids;
  absl::Status status;
  {
    StoreLock lock(impl_.get());
    const auto found = impl_->by_key.find(key);
    if (found == impl_->by_key.end()) return SessionUnknownError();
    SessionRecord& record = *found->second;
    record.image_rows = shared->position;
    if (record.journaled && impl_->options.images != nullptr) {
      kept_as = record.name.text();
      ids = impl_->IdsOfRows(record, shared->position);
    }
    status = impl_->TakeImage(record, shared);
  }
  if (!kept_as.empty()) impl_->options.images->Put(kept_as, ids, shared);
  return status;
}

absl::Status SessionStore::Impl::TakeImage(
    SessionRecord& record, std::shared_ptr<const StateImage> image) {
  const int64_t replaced = record.image ? record.image->Bytes() : 0;
  // Written as differences: a sum could overflow.
  if (!MakeImageRoom(image->Bytes() - replaced)) {
    return NoSessionMemoryError(
        absl::StrCat("state images fill their budget of ", options.image_bytes,
                     " bytes"),
        options.memory_retry);
  }
  image_bytes += image->Bytes() - replaced;
  dropped.push_back(std::exchange(record.image, std::move(image)));
  return absl::OkStatus();
}

TokenSlice SessionStore::Impl::IdsOfRows(const SessionRecord& record,
                                         int64_t rows) const {
  const int64_t count = std::min(rows, options.rebuild_ids);
  return record.token_ids.Slice(rows - count, count);
}

std::shared_ptr<const StateImage> SessionStore::GetImage(uint64_t key) const {
  absl::MutexLock lock(&impl_->mutex);
  const auto found = impl_->by_key.find(key);
  return found == impl_->by_key.end() ? nullptr : found->second->image;
}

void SessionStore::DropImage(uint64_t key) {
  StoreLock lock(impl_.get());
  const auto found = impl_->by_key.find(key);
  if (found != impl_->by_key.end()) impl_->DropImage(*found->second);
}

}  // namespace txl
