#include "server/session/session_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/error.h"
#include "server/session/page_token.h"
#include "server/session/session_errors.h"
#include "server/session/session_id.h"
#include "server/session/session_store_impl.h"

namespace txl {
namespace {

// Sessions that List copies under one hold of the lock.
constexpr size_t kListedAtOnce = 50;

absl::StatusOr<size_t> EffectivePageSize(int page_size) {
  if (page_size < 0) {
    return FieldError("page_size", "a page size is not negative");
  }
  if (page_size == 0) page_size = kDefaultPageSize;
  return static_cast<size_t>(std::min(page_size, kMaxPageSize));
}

// The session after which a page begins.
absl::StatusOr<SessionName> PageBegin(const std::string& tenant,
                                      const std::string& page_token) {
  std::string after;  // before every id
  if (!page_token.empty()) {
    TXL_ASSIGN_OR_RETURN(after, DecodePageToken(page_token));
  }
  return SessionName(tenant, std::move(after));
}

SessionInfo InfoOf(const StoredInfo& stored) {
  SessionInfo info;
  info.session_id = SessionName::OfText(stored.head.session_id).id();
  info.position = info.durable_position = stored.position;
  info.create_time = stored.head.create_time;
  info.last_use_time = stored.head.last_use;
  info.ttl = stored.head.ttl;
  info.expire_time = info.last_use_time + info.ttl;
  info.last_turn = stored.head.last_turn;
  return info;
}

}  // namespace

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

SessionStore::SessionStore(const SessionStoreOptions& options, Clock* clock)
    : impl_(std::make_unique<Impl>(options, clock)) {
  if (options.shared == nullptr) return;
  options.shared->OnMoved(
      [impl = impl_.get()](const auto& session_id, const auto& claim) {
        impl->MoveAway(session_id, claim);
      });
}

SessionStore::~SessionStore() = default;

absl::StatusOr<SessionInfo> SessionStore::Create(
    const SessionName& session, std::optional<absl::Duration> ttl) {
  std::string id = session.id();
  if (id.empty()) {
    absl::StatusOr<std::string> random = RandomSessionId();
    if (!random.ok()) return random.status();
    id = *std::move(random);
  }
  absl::Status valid = ValidateSessionId(id);
  if (valid.ok() && ttl.has_value()) valid = ValidateTtl(*ttl, impl_->options);
  if (!valid.ok()) return valid;

  SessionName name(session.tenant(), std::move(id));
  StoreLock lock(impl_.get());
  impl_->Expire();
  if (impl_->by_name.count(name) > 0) return SessionExistsError();
  TXL_RETURN_IF_ERROR(impl_->quota.MayAdd(name.tenant(), 0));
  absl::StatusOr<RecordPtr> record =
      impl_->Add(std::move(name), ttl.value_or(impl_->options.default_ttl));
  if (!record.ok()) return record.status();
  impl_->Journal(**record);
  impl_->BecomeIdle(**record);
  return impl_->Info(**record);
}

absl::StatusOr<SessionInfo> SessionStore::Get(const SessionName& session) {
  const absl::Status valid = ValidateSessionId(session.id());
  if (!valid.ok()) return valid;
  StoreLock lock(impl_.get());
  impl_->Expire();
  absl::StatusOr<RecordPtr> record = impl_->Find(session);
  if (!record.ok()) return record.status();
  return impl_->Info(**record);
}

absl::StatusOr<SessionText> SessionStore::GetTokens(const SessionName& session,
                                                    int64_t from,
                                                    int64_t count) {
  const absl::Status valid = ValidateSessionId(session.id());
  if (!valid.ok()) return valid;
  SessionText text;
  TokenSlice slice;
  {
    StoreLock lock(impl_.get());
    impl_->Expire();
    absl::StatusOr<RecordPtr> record = impl_->Find(session);
    if (!record.ok()) return record.status();
    text.info = impl_->Info(**record);
    slice = (*record)->token_ids.Slice(from, count);
  }
  text.token_ids = slice.Copy();
  return text;
}

absl::StatusOr<SessionPage> SessionStore::List(const std::string& tenant,
                                               int page_size,
                                               const std::string& page_token) {
  const absl::StatusOr<size_t> size = EffectivePageSize(page_size);
  if (!size.ok()) return size.status();
  absl::StatusOr<SessionName> begin = PageBegin(tenant, page_token);
  if (!begin.ok()) return begin.status();
  SessionName after = *std::move(begin);

  SessionPage page;
  bool more = true;
  while (more && page.sessions.size() < *size) {
    const size_t count = std::min(*size - page.sessions.size(), kListedAtOnce);
    more = impl_->ListSome(after, count, page.sessions);
    if (more) after = SessionName(tenant, page.sessions.back().session_id);
  }
  if (more) page.next_page_token = EncodePageToken(after.id());
  return page;
}

bool SessionStore::Impl::ListSome(const SessionName& after, size_t count,
                                  std::vector<SessionInfo>& sessions) {
  StoreLock lock(this);
  Expire();
  auto next = by_name.upper_bound(after);
  const auto more = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return next != by_name.end() && next->first.tenant() == after.tenant();
  };
  for (; more() && count > 0; ++next, --count) {
    sessions.push_back(Info(*next->second));
  }
  return more();
}

void SessionStore::ListStored(
    const std::string& tenant, int page_size, const std::string& page_token,
    std::function<void(absl::StatusOr<SessionPage>)> done) {
  if (impl_->options.journal == nullptr) {
    return done(List(tenant, page_size, page_token));
  }
  const absl::StatusOr<size_t> size = EffectivePageSize(page_size);
  if (!size.ok()) return done(size.status());
  const absl::StatusOr<SessionName> after = PageBegin(tenant, page_token);
  if (!after.ok()) return done(after.status());
  // One more tells whether a page follows.
  impl_->options.journal->List(
      after->text(), static_cast<int64_t>(*size) + 1,
      [this, size = *size,
       done](const absl::StatusOr<std::vector<StoredInfo>>& stored) {
        if (!stored.ok()) return done(stored.status());
        done(impl_->PageOf(*stored, size));
      });
}

SessionPage SessionStore::Impl::PageOf(const std::vector<StoredInfo>& stored,
                                       size_t size) {
  SessionPage page;
  for (const StoredInfo& info : stored) {
    if (page.sessions.size() == size) {
      page.next_page_token = EncodePageToken(page.sessions.back().session_id);
      break;
    }
    // What is in memory is known better here.
    absl::MutexLock lock(&mutex);
    const auto here = by_name.find(SessionName::OfText(info.head.session_id));
    const bool known = here != by_name.end() &&
                       (options.shared == nullptr || here->second->busy);
    page.sessions.push_back(known ? Info(*here->second) : InfoOf(info));
  }
  return page;
}

absl::Status SessionStore::Delete(const SessionName& session) {
  absl::Status valid = ValidateSessionId(session.id());
  if (!valid.ok()) return valid;
  StoreLock lock(impl_.get());
  impl_->Expire();
  const absl::StatusOr<RecordPtr> record = impl_->Find(session);
  if (!record.ok()) return record.status();
  impl_->RemoveStored(**record);
  if ((*record)->busy) {
    // The turn sees it within a step; the session ends with its lease.
    (*record)->delete_requested = true;
    impl_->Uncount(**record);
    impl_->by_name.erase(session);
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
      impl_->Add(SessionName(), absl::InfiniteDuration());
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

SessionStore::Counts SessionStore::counts() {
  StoreLock lock(impl_.get());
  impl_->Expire();
  Counts counts;
  counts.idle = static_cast<int64_t>(impl_->idle.size());
  counts.busy = impl_->busy_count;
  counts.created = impl_->created_count;
  counts.ended = impl_->ended_count;
  counts.loaded = impl_->loaded_count;
  counts.stored_away = impl_->stored_away_count;
  counts.image_bytes = impl_->image_bytes;
  counts.id_bytes = impl_->IdBytes();
  counts.turn_record_bytes = impl_->turn_record_bytes;
  return counts;
}

std::map<std::string, SessionUse> SessionStore::tenant_uses() {
  StoreLock lock(impl_.get());
  impl_->Expire();
  return impl_->quota.uses();
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
