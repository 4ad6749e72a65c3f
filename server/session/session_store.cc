#include "server/session/session_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/error.h"
#include "server/session/session_errors.h"
#include "server/session/session_name.h"
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

absl::StatusOr<SessionName> NameOfNew(const SessionName& wanted,
                                      std::optional<absl::Duration> ttl,
                                      const SessionStoreOptions& options) {
  std::string id = wanted.id();
  if (id.empty()) {
    TXL_ASSIGN_OR_RETURN(id, RandomSessionId());
  }
  TXL_RETURN_IF_ERROR(ValidateSessionId(id));
  if (ttl.has_value()) TXL_RETURN_IF_ERROR(ValidateTtl(*ttl, options));
  return SessionName(wanted.tenant(), std::move(id));
}

SessionStore::SessionStore(const SessionStoreOptions& options, Clock* clock)
    : impl_(std::make_unique<Impl>(this, options, clock)) {
  if (options.shared == nullptr) return;
  options.shared->OnMoved(
      [impl = impl_.get()](const auto& session_id, const auto& claim) {
        impl->MoveAway(session_id, claim);
      });
}

SessionStore::~SessionStore() = default;

absl::StatusOr<SessionInfo> SessionStore::Create(
    const SessionName& session, std::optional<absl::Duration> ttl) {
  TXL_ASSIGN_OR_RETURN(SessionName name,
                       NameOfNew(session, ttl, impl_->options));
  StoreLock lock(impl_.get());
  impl_->Expire();
  if (impl_->table.Named(name) != nullptr) return SessionExistsError();
  TXL_RETURN_IF_ERROR(impl_->quota.MayAdd(name.tenant(), 0));
  TXL_ASSIGN_OR_RETURN(
      const RecordPtr record,
      impl_->Add(std::move(name), ttl.value_or(impl_->options.default_ttl), 0));
  impl_->entries.Create(*record);
  impl_->table.BecomeIdle(*record);
  return impl_->Info(*record);
}

absl::StatusOr<SessionInfo> SessionStore::Get(const SessionName& session) {
  StoreLock lock(impl_.get());
  TXL_ASSIGN_OR_RETURN(const RecordPtr record, impl_->Find(session));
  return impl_->Info(*record);
}

absl::StatusOr<SessionText> SessionStore::GetTokens(const SessionName& session,
                                                    int64_t from,
                                                    int64_t count) {
  SessionText text;
  TokenSlice slice;
  {
    StoreLock lock(impl_.get());
    TXL_ASSIGN_OR_RETURN(const RecordPtr record, impl_->Find(session));
    text.info = impl_->Info(*record);
    slice = record->token_ids.Slice(from, count);
  }
  text.token_ids = slice.Copy();
  return text;
}

absl::StatusOr<SessionPage> SessionStore::List(const std::string& tenant,
                                               int page_size,
                                               const std::string& page_token) {
  TXL_ASSIGN_OR_RETURN(const size_t size, EffectivePageSize(page_size));
  TXL_ASSIGN_OR_RETURN(SessionName after, PageBegin(tenant, page_token));
  SessionPage page;
  while (true) {
    const size_t count = std::min(size - page.sessions.size(), kListedAtOnce);
    StoreLock lock(impl_.get());
    impl_->Expire();
    // One more tells whether others follow.
    const std::vector<RecordPtr> some =
        impl_->table.NamedAfter(after, count + 1);
    for (size_t i = 0; i < std::min(count, some.size()); ++i) {
      page.sessions.push_back(impl_->Info(*some[i]));
    }
    if (some.size() <= count) return page;
    after = some[count - 1]->name;
    if (page.sessions.size() == size) break;
  }
  page.next_page_token = EncodePageToken(after.id());
  return page;
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
        SessionPage page;
        for (const StoredInfo& info : *stored) {
          if (page.sessions.size() == size) {
            page.next_page_token =
                EncodePageToken(page.sessions.back().session_id);
            break;
          }
          // What is in memory is known better here.
          absl::MutexLock lock(&impl_->mutex);
          const RecordPtr here =
              impl_->table.Named(SessionName::OfText(info.head.session_id));
          const bool known = here != nullptr &&
                             (impl_->options.shared == nullptr || here->busy);
          page.sessions.push_back(known ? impl_->Info(*here) : InfoOf(info));
        }
        done(std::move(page));
      });
}

absl::Status SessionStore::Delete(const SessionName& session) {
  StoreLock lock(impl_.get());
  TXL_ASSIGN_OR_RETURN(const RecordPtr record, impl_->Find(session));
  impl_->RemoveStored(*record);
  if (record->busy) {
    // The turn sees it within a step; the session ends with its lease.
    record->delete_requested = true;
    impl_->Unname(*record);
  } else {
    impl_->End(record);
  }
  return absl::OkStatus();
}

absl::Status SessionStore::MayAdd(const std::string& tenant, int64_t tokens) {
  StoreLock lock(impl_.get());
  impl_->Expire();
  return impl_->quota.MayAdd(tenant, tokens);
}

absl::StatusOr<SessionLease> SessionStore::Acquire(const SessionName& session) {
  // A turn without a name waits for nobody.
  TXL_ASSIGN_OR_RETURN(std::optional<SessionLease> lease,
                       AcquireFor(session, TurnIdentity(), nullptr));
  return *std::move(lease);
}

absl::StatusOr<std::optional<SessionLease>> SessionStore::AcquireFor(
    const SessionName& session, TurnIdentity identity, LeaseCallback later) {
  LeaseCallback waited;
  RecordPtr free;
  {
    StoreLock lock(impl_.get());
    TXL_ASSIGN_OR_RETURN(RecordPtr record, impl_->Find(session));
    if (!record->busy) {
      impl_->table.BecomeBusy(*record);
      record->running = identity;
      if (later == nullptr || record->claim == nullptr) {
        return std::optional<SessionLease>(
            SessionLease(this, std::move(record)));
      }
      record->acquiring = true;
      free = std::move(record);
    } else if (!identity.named() ||
               identity.request_id != record->running.request_id) {
      return SessionBusyError(impl_->options.busy_retry);
    } else if (identity.digest != record->running.digest) {
      return OtherRequestError();
    } else {
      record->superseded = true;
      waited = std::exchange(record->next, std::move(later));
      impl_->wakeup.Ask();
    }
  }
  if (free != nullptr) impl_->Own(free, identity, std::move(later));
  if (waited != nullptr) waited(SupersededError());
  return std::optional<SessionLease>();
}

absl::StatusOr<SessionLease> SessionStore::AcquireTemporary() {
  StoreLock lock(impl_.get());
  impl_->Expire();
  TXL_ASSIGN_OR_RETURN(RecordPtr record,
                       impl_->Add(SessionName(), absl::InfiniteDuration(), 0));
  impl_->table.BecomeBusy(*record);
  return SessionLease(this, std::move(record));
}

absl::Status SessionStore::PutImage(uint64_t key, StateImage image) {
  const auto shared = std::make_shared<const StateImage>(std::move(image));
  bool room = false;
  {
    StoreLock lock(impl_.get());
    const RecordPtr record = impl_->table.OfKey(key);
    if (record == nullptr) return SessionUnknownError();
    record->image_rows = shared->position;
    if (record->journaled && impl_->options.images != nullptr) {
      // With the lock, as Remove: what deletes or rewinds the session comes
      // before this, so that it finds no record, or after it.
      impl_->options.images->Put(record->name.text(),
                                 impl_->IdsOfRows(*record, shared->position),
                                 shared);
    }
    const int64_t replaced = record->image ? record->image->Bytes() : 0;
    room = impl_->MakeImageRoom(shared->Bytes() - replaced);
    // Room may have been made by letting go of this very session.
    if (room && impl_->table.OfKey(key) != nullptr) {
      impl_->memory.SetImage(*record, shared);
    }
  }
  if (room) return absl::OkStatus();
  return NoSessionMemoryError(
      absl::StrCat("state images fill their budget of ",
                   impl_->options.image_bytes, " bytes"),
      impl_->options.memory_retry);
}

std::shared_ptr<const StateImage> SessionStore::GetImage(uint64_t key) const {
  absl::MutexLock lock(&impl_->mutex);
  const RecordPtr record = impl_->table.OfKey(key);
  return record == nullptr ? nullptr : record->image;
}

void SessionStore::DropImage(uint64_t key) {
  StoreLock lock(impl_.get());
  const RecordPtr record = impl_->table.OfKey(key);
  if (record != nullptr) impl_->memory.SetImage(*record, nullptr);
}

std::vector<uint64_t> SessionStore::ImagesDue(int64_t tokens) const {
  std::vector<uint64_t> due;
  absl::MutexLock lock(&impl_->mutex);
  for (const uint64_t key : impl_->table.in_slot()) {
    const SessionRecord& record = *impl_->table.OfKey(key);
    const int64_t rows = record.position() - 1;
    if (!record.busy && record.journaled && rows > 0 &&
        rows - record.image_rows >= tokens) {
      due.push_back(key);
    }
  }
  return due;
}

void SessionStore::SetInSlot(uint64_t key, bool in_slot) {
  absl::MutexLock lock(&impl_->mutex);
  const RecordPtr record = impl_->table.OfKey(key);
  if (record != nullptr) impl_->table.SetInSlot(*record, in_slot);
}

void SessionStore::ExpireNow() {
  StoreLock lock(impl_.get());
  impl_->Expire();
}

std::vector<uint64_t> SessionStore::TakeEndedKeys() {
  absl::MutexLock lock(&impl_->mutex);
  return impl_->table.TakeEndedKeys();
}

SessionStore::KeyState SessionStore::GetKeyState(uint64_t key) const {
  absl::MutexLock lock(&impl_->mutex);
  const RecordPtr record = impl_->table.OfKey(key);
  if (record == nullptr) return {};
  KeyState state;
  state.exists = true;
  state.busy = record->busy;
  if (!state.busy) state.idle = impl_->clock->Monotonic() - record->last_use;
  return state;
}

SessionStore::Counts SessionStore::counts() {
  StoreLock lock(impl_.get());
  impl_->Expire();
  Counts counts = impl_->table.counts();
  counts.image_bytes = impl_->memory.image_bytes();
  counts.id_bytes = impl_->memory.id_bytes() + impl_->ended.Bytes();
  counts.turn_record_bytes = impl_->memory.turn_record_bytes();
  return counts;
}

std::map<std::string, SessionUse> SessionStore::tenant_uses() {
  StoreLock lock(impl_.get());
  impl_->Expire();
  return impl_->quota.uses();
}

StoreReport SessionStore::Report(size_t most) const {
  absl::MutexLock lock(&impl_->mutex);
  StoreReport report = impl_->table.report();
  for (const uint64_t key : impl_->table.in_slot()) {
    if (report.sessions.size() == most) break;
    const SessionRecord& record = *impl_->table.OfKey(key);
    SessionReport& of = report.sessions.emplace_back();
    of.key = key;
    of.name = record.name;
    of.busy = record.busy;
    of.position = record.position();
    of.durable_position = impl_->DurablePositionOf(record);
    of.image_rows = record.image_rows;
    of.has_image = record.image != nullptr;
    of.idle = impl_->clock->Monotonic() - record.last_use;
    of.last_outcome = record.last_turn.outcome;
  }
  return report;
}

void SessionStore::SetWakeup(std::function<void()> wakeup) {
  absl::MutexLock lock(&impl_->mutex);
  impl_->wakeup.Set(wakeup);
  const auto none_runs = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(impl_->mutex) {
    return impl_->wakeup.running() == 0;
  };
  impl_->mutex.Await(absl::Condition(&none_runs));
}

}  // namespace txl
