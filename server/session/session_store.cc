#include "server/session/session_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/session/page_token.h"
#include "server/session/session_errors.h"
#include "server/session/session_id.h"
#include "server/session/session_store_impl.h"

namespace txl {
namespace {

constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;

absl::Status ValidateTtl(absl::Duration ttl,
                         const SessionStoreOptions& options) {
  if (ttl < options.min_ttl || ttl > options.max_ttl) {
    return FieldError(
        "ttl", absl::StrCat("a time-to-live is from ",
                            absl::FormatDuration(options.min_ttl), " to ",
                            absl::FormatDuration(options.max_ttl)));
  }
  return absl::OkStatus();
}

// 0 is the default.
absl::StatusOr<int> EffectivePageSize(int page_size) {
  if (page_size < 0) {
    return FieldError("page_size", "a page size is not negative");
  }
  if (page_size > kMaxPageSize) {
    return OverLimitError("page_size", absl::StrCat("a page has at most ",
                                                    kMaxPageSize, " sessions"));
  }
  return page_size == 0 ? kDefaultPageSize : page_size;
}

}  // namespace

SessionStore::SessionStore(const SessionStoreOptions& options, Clock* clock)
    : impl_(std::make_unique<Impl>(options, clock)) {}

SessionStore::~SessionStore() = default;

absl::StatusOr<SessionInfo> SessionStore::Create(
    const std::string& session_id, std::optional<absl::Duration> ttl) {
  std::string id = session_id;
  if (id.empty()) {
    absl::StatusOr<std::string> random = RandomSessionId();
    if (!random.ok()) return random.status();
    id = *std::move(random);
  }
  absl::Status valid = ValidateSessionId(id);
  if (valid.ok() && ttl.has_value()) valid = ValidateTtl(*ttl, impl_->options);
  if (!valid.ok()) return valid;

  StoreLock lock(impl_.get());
  impl_->Expire();
  if (impl_->by_id.count(id) > 0) return SessionExistsError();
  absl::StatusOr<RecordPtr> record =
      impl_->Add(std::move(id), ttl.value_or(impl_->options.default_ttl));
  if (!record.ok()) return record.status();
  impl_->BecomeIdle(**record);
  return impl_->Info(**record);
}

absl::StatusOr<SessionInfo> SessionStore::Get(const std::string& session_id) {
  const absl::Status valid = ValidateSessionId(session_id);
  if (!valid.ok()) return valid;
  StoreLock lock(impl_.get());
  impl_->Expire();
  absl::StatusOr<RecordPtr> record = impl_->Find(session_id);
  if (!record.ok()) return record.status();
  return impl_->Info(**record);
}

absl::StatusOr<SessionText> SessionStore::GetWithTokens(
    const std::string& session_id) {
  const absl::Status valid = ValidateSessionId(session_id);
  if (!valid.ok()) return valid;
  StoreLock lock(impl_.get());
  impl_->Expire();
  absl::StatusOr<RecordPtr> record = impl_->Find(session_id);
  if (!record.ok()) return record.status();
  return SessionText{impl_->Info(**record), (*record)->token_ids};
}

absl::StatusOr<SessionPage> SessionStore::List(int page_size,
                                               const std::string& page_token) {
  const absl::StatusOr<int> size = EffectivePageSize(page_size);
  if (!size.ok()) return size.status();
  std::string after;  // before every id
  if (!page_token.empty()) {
    absl::StatusOr<std::string> decoded = DecodePageToken(page_token);
    if (!decoded.ok()) return decoded.status();
    after = *std::move(decoded);
  }

  StoreLock lock(impl_.get());
  impl_->Expire();
  SessionPage page;
  auto next = impl_->by_id.upper_bound(after);
  while (next != impl_->by_id.end() &&
         static_cast<int>(page.sessions.size()) < *size) {
    page.sessions.push_back(impl_->Info(*next->second));
    ++next;
  }
  if (next != impl_->by_id.end()) {
    page.next_page_token = EncodePageToken(page.sessions.back().session_id);
  }
  return page;
}

absl::Status SessionStore::Delete(const std::string& session_id) {
  absl::Status valid = ValidateSessionId(session_id);
  if (!valid.ok()) return valid;
  StoreLock lock(impl_.get());
  impl_->Expire();
  const absl::StatusOr<RecordPtr> record = impl_->Find(session_id);
  if (!record.ok()) return record.status();
  if ((*record)->busy) {
    // The turn sees it within a step; the session ends with its lease.
    (*record)->delete_requested = true;
    impl_->by_id.erase(session_id);
    impl_->wake_pending = true;
  } else {
    impl_->End(*record);
  }
  return absl::OkStatus();
}

absl::StatusOr<SessionLease> SessionStore::AcquireTemporary() {
  StoreLock lock(impl_.get());
  impl_->Expire();
  absl::StatusOr<RecordPtr> record =
      impl_->Add(/*session_id=*/"", absl::InfiniteDuration());
  if (!record.ok()) return record.status();
  impl_->BecomeBusy(**record);
  return SessionLease(this, *std::move(record));
}

void SessionStore::ExpireNow() {
  StoreLock lock(impl_.get());
  impl_->Expire();
}

std::vector<uint64_t> SessionStore::TakeEndedKeys() {
  absl::MutexLock lock(&impl_->mutex);
  return std::exchange(impl_->ended_keys, {});
}

SessionStore::KeyState SessionStore::GetKeyState(uint64_t key) const {
  absl::MutexLock lock(&impl_->mutex);
  const auto found = impl_->by_key.find(key);
  if (found == impl_->by_key.end()) return {};
  KeyState state;
  state.exists = true;
  state.busy = found->second->busy;
  if (!state.busy) {
    state.idle = impl_->clock->Monotonic() - found->second->last_use;
  }
  return state;
}

SessionStore::Counts SessionStore::counts() const {
  absl::MutexLock lock(&impl_->mutex);
  Counts counts;
  counts.idle = static_cast<int64_t>(impl_->idle.size());
  counts.busy = impl_->busy_count;
  counts.created = impl_->created_count;
  counts.ended = impl_->ended_count;
  counts.image_bytes = impl_->image_bytes;
  counts.turn_record_bytes = impl_->turn_record_bytes;
  return counts;
}

void SessionStore::SetWakeup(std::function<void()> wakeup) {
  absl::MutexLock lock(&impl_->mutex);
  impl_->wakeup.swap(wakeup);
  const auto none_runs = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(impl_->mutex) {
    return impl_->wakeups_running == 0;
  };
  impl_->mutex.Await(absl::Condition(&none_runs));
}

}  // namespace txl
