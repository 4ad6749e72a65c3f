// SessionStore's state images, found by lease key.

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/session/session_errors.h"
#include "server/session/session_store.h"
#include "server/session/session_store_impl.h"

namespace txl {

absl::Status SessionStore::PutImage(uint64_t key, StateImage image) {
  auto shared = std::make_shared<const StateImage>(std::move(image));
  StoreLock lock(impl_.get());
  const auto found = impl_->by_key.find(key);
  if (found == impl_->by_key.end()) return SessionUnknownError();
  SessionRecord& record = *found->second;
  const int64_t replaced = record.image ? record.image->Bytes() : 0;
  const int64_t others = impl_->image_bytes - replaced;
  // Written as a difference: a sum could overflow.
  if (shared->Bytes() > impl_->options.image_bytes - others) {
    return NoSessionMemoryError(
        absl::StrCat("state images fill their budget of ",
                     impl_->options.image_bytes, " bytes"),
        impl_->options.memory_retry);
  }
  impl_->image_bytes = others + shared->Bytes();
  record.image.swap(shared);
  return absl::OkStatus();
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
