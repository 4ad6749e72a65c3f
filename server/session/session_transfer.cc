// SessionStore: sessions that leave as a whole, and that come as one.

#include <algorithm>
#include <utility>

#include "model/base/status_macros.h"
#include "server/session/session_errors.h"
#include "server/session/session_id.h"
#include "server/session/session_import.h"
#include "server/session/session_store.h"
#include "server/session/session_store_impl.h"

namespace txl {
namespace {

constexpr char kImported[] = "IMPORTED";  // LastTurn::outcome of what is none
constexpr size_t kMostOutcomeBytes = 64;

// Whether a server wrote this: a file says what its maker wants.
bool IsOfAServer(const LastTurn& last) {
  const bool named = !last.request_id.empty();
  return !last.outcome.empty() && last.outcome.size() <= kMostOutcomeBytes &&
         (!named || ValidateSessionId(last.request_id).ok());
}

RequestHistory NewestOf(std::vector<uint64_t> hashes, int64_t count) {
  const auto held = static_cast<int64_t>(hashes.size());
  hashes.erase(hashes.begin(),
               hashes.begin() + std::max<int64_t>(0, held - count));
  return RequestHistory(std::move(hashes));
}

}  // namespace

absl::StatusOr<SessionSnapshot> SessionStore::Snapshot(
    const SessionName& session) {
  TXL_RETURN_IF_ERROR(ValidateSessionId(session.id()));
  SessionSnapshot snapshot;
  StoreLock lock(impl_.get());
  impl_->Expire();
  TXL_ASSIGN_OR_RETURN(const RecordPtr record, impl_->Find(session));
  if (record->busy) return SessionBusyError(impl_->options.busy_retry);
  snapshot.head = impl_->HeadOf(*record);
  snapshot.token_ids = record->token_ids.Slice(0, record->position());
  snapshot.state = record->image;
  return snapshot;
}

absl::StatusOr<SessionInfo> SessionStore::Import(
    const SessionName& name, std::optional<absl::Duration> ttl,
    ImportedSession session) {
  std::string id = name.id();
  if (id.empty()) {
    TXL_ASSIGN_OR_RETURN(id, RandomSessionId());
  }
  TXL_RETURN_IF_ERROR(ValidateSessionId(id));
  if (ttl.has_value()) {
    TXL_RETURN_IF_ERROR(ValidateTtl(*ttl, impl_->options));
  }
  const absl::Duration kept = std::clamp(
      session.head.ttl, impl_->options.min_ttl, impl_->options.max_ttl);
  std::shared_ptr<const StateImage> image;
  if (session.state.has_value()) {
    image = std::make_shared<const StateImage>(*std::move(session.state));
  }
  SessionName made(name.tenant(), std::move(id));
  StoreLock lock(impl_.get());
  impl_->Expire();
  if (impl_->by_name.count(made) > 0) return SessionExistsError();
  TXL_ASSIGN_OR_RETURN(
      const RecordPtr record,
      impl_->AddImported(std::move(made), ttl.value_or(kept), session));
  if (image != nullptr && image->position < record->position() &&
      image->Bytes() <= impl_->options.image_bytes - impl_->image_bytes) {
    impl_->image_bytes += image->Bytes();
    record->image.swap(image);
  }
  impl_->Journal(*record);
  impl_->BecomeIdle(*record);
  return impl_->Info(*record);
}

absl::Status SessionStore::MayAdd(const std::string& tenant, int64_t tokens) {
  StoreLock lock(impl_.get());
  impl_->Expire();
  return impl_->quota.MayAdd(tenant, tokens);
}

absl::StatusOr<RecordPtr> SessionStore::Impl::AddImported(
    SessionName name, absl::Duration ttl, ImportedSession& session) {
  const int64_t tokens = session.token_ids.size();
  TXL_RETURN_IF_ERROR(quota.MayAdd(name.tenant(), tokens));
  TXL_RETURN_IF_ERROR(
      MakeRoom(kSessionRecordBytes + TokenSequence::BytesFor(tokens), false));
  TXL_ASSIGN_OR_RETURN(RecordPtr record, Add(std::move(name), ttl));
  record->token_ids = std::move(session.token_ids);
  Charge(*record, tokens);
  const std::string& state = session.head.detokenizer;
  if (record->detokenizer != nullptr && !state.empty() &&
      !record->detokenizer->SetState(state)) {
    record->detokenizer = DetokenizerBehind(record->token_ids);
  }
  record->earlier_requests = NewestOf(std::move(session.head.earlier_requests),
                                      options.remembered_requests);
  if (IsOfAServer(session.head.last_turn)) {
    record->last_turn = std::move(session.head.last_turn);
  } else {
    record->last_turn.outcome = kImported;
    record->last_turn.start_position = tokens;
  }
  return record;
}

}  // namespace txl
