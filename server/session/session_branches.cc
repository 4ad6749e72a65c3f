// SessionStore: sessions that begin like another one, and sessions that go
// back.

#include <openssl/sha.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/error.h"
#include "server/session/session_errors.h"
#include "server/session/session_id.h"
#include "server/session/session_store.h"
#include "server/session/session_store_impl.h"

namespace txl {
namespace {

// LastTurn::outcome of what is no turn.
constexpr char kForked[] = "FORKED";
constexpr char kRewound[] = "REWOUND";

// Ids that are read for the state of text behind them, so that going back in a
// long session takes no longer than in a short one.
constexpr int64_t kTextIds = 1024;

absl::StatusOr<std::string> IdOf(const ForkRequest& request) {
  if (!request.new_session_id.empty()) {
    absl::Status valid = ValidateSessionId(request.new_session_id);
    if (valid.ok()) return request.new_session_id;
    return FieldError("new_session_id", valid.message());
  }
  if (!request.request_id.empty()) return IdOfFork(request);
  return RandomSessionId();
}

absl::Status CheckPosition(int64_t position, int64_t most) {
  if (position >= 0 && position <= most) return absl::OkStatus();
  return FieldError("position",
                    absl::StrCat("must be in [0, ", most, "], is ", position));
}

bool IsWorkOf(const LastTurn& last, absl::string_view request_id,
              absl::string_view outcome) {
  return !request_id.empty() && last.request_id == request_id &&
         last.outcome == outcome;
}

LastTurn NoTurn(const std::string& request_id, const char* outcome,
                int64_t position) {
  LastTurn last;
  last.request_id = request_id;
  last.outcome = outcome;
  last.start_position = position;
  return last;
}

}  // namespace

std::string IdOfFork(const ForkRequest& request) {
  const std::string text =
      absl::StrCat("fork ", request.session.id(), " ", request.request_id);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         digest);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest), 16));
}

absl::StatusOr<SessionInfo> SessionStore::Fork(const ForkRequest& request) {
  TXL_RETURN_IF_ERROR(ValidateSessionId(request.session.id()));
  if (request.ttl.has_value()) {
    TXL_RETURN_IF_ERROR(ValidateTtl(*request.ttl, impl_->options));
  }
  TXL_ASSIGN_OR_RETURN(std::string id, IdOf(request));
  const SessionName name(request.session.tenant(), std::move(id));
  StoreLock lock(impl_.get());
  impl_->Expire();
  if (const auto made = impl_->by_name.find(name);
      made != impl_->by_name.end()) {
    return IsWorkOf(made->second->last_turn, request.request_id, kForked)
               ? impl_->Info(*made->second)
               : absl::StatusOr<SessionInfo>(SessionExistsError());
  }
  TXL_ASSIGN_OR_RETURN(const RecordPtr parent, impl_->Find(request.session));
  if (parent->busy) return SessionBusyError(impl_->options.busy_retry);
  const int64_t position = request.position.value_or(parent->position());
  TXL_RETURN_IF_ERROR(CheckPosition(position, parent->position()));
  TXL_RETURN_IF_ERROR(impl_->quota.MayAdd(name.tenant(), position));
  // In use while it is forked: an empty one might have to make room.
  impl_->BecomeBusy(*parent);
  absl::StatusOr<RecordPtr> child = impl_->AddBranch(
      *parent, name, position, request.ttl.value_or(parent->ttl));
  parent->busy = false;
  --impl_->busy_count;
  impl_->BecomeIdle(*parent);
  if (!child.ok()) return child.status();
  (*child)->last_turn = NoTurn(request.request_id, kForked, position);
  if (parent->journaled) {
    impl_->JournalFork(*parent, **child);
  }
  impl_->BecomeIdle(**child);
  return impl_->Info(**child);
}

absl::StatusOr<SessionInfo> SessionStore::Rewind(const RewindRequest& request) {
  TXL_RETURN_IF_ERROR(ValidateSessionId(request.session.id()));
  StoreLock lock(impl_.get());
  impl_->Expire();
  TXL_ASSIGN_OR_RETURN(const RecordPtr record, impl_->Find(request.session));
  if (record->busy) return SessionBusyError(impl_->options.busy_retry);
  if (IsWorkOf(record->last_turn, request.request_id, kRewound) &&
      record->position() == request.position) {
    return impl_->Info(*record);
  }
  const int64_t expected =
      request.expected_position.value_or(record->position());
  if (expected != record->position()) {
    return PositionMismatchError(record->position(), expected);
  }
  TXL_RETURN_IF_ERROR(CheckPosition(request.position, record->position()));
  if (request.position == record->position()) return impl_->Info(*record);
  impl_->BecomeBusy(*record);
  impl_->CutTo(record, request.position);
  impl_->RememberRequest(*record, request.request_id);
  record->last_turn = NoTurn(request.request_id, kRewound, request.position);
  if (record->journaled) {
    impl_->Entered(*record, impl_->options.journal->Rewind(
                                record->name.text(), request.position,
                                impl_->HeadOf(*record)));
  }
  record->busy = false;
  --impl_->busy_count;
  impl_->BecomeIdle(*record);
  return impl_->Info(*record);
}

absl::StatusOr<RecordPtr> SessionStore::Impl::AddBranch(SessionRecord& parent,
                                                        SessionName name,
                                                        int64_t position,
                                                        absl::Duration ttl) {
  const auto shared =
      static_cast<size_t>(position / TokenSequence::kPieceTokens);
  const int64_t own =
      TokenSequence::BytesFor(position) -
      static_cast<int64_t>(shared) * TokenSequence::BytesOfPiece();
  TXL_RETURN_IF_ERROR(MakeRoom(kSessionRecordBytes + own, false));
  TXL_ASSIGN_OR_RETURN(RecordPtr child, Add(std::move(name), ttl));
  if (parent.shared_pieces.size() < shared) {
    Charge(parent, parent.charged_tokens, shared);
  }
  child->token_ids = parent.token_ids.First(position);
  child->shared_pieces.assign(parent.shared_pieces.begin(),
                              parent.shared_pieces.begin() + shared);
  session_bytes += own;
  child->charged_tokens = position;
  quota.Change(child->name.tenant(), 0, position);
  child->detokenizer = position == parent.position() && parent.detokenizer
                           ? parent.detokenizer->Clone()
                           : DetokenizerBehind(child->token_ids);
  // An image of fewer rows saves feeding so many tokens again.
  const std::shared_ptr<const StateImage>& image = parent.image;
  if (image != nullptr && image->position < position &&
      image->Bytes() <= options.image_bytes - image_bytes) {
    child->image = image;
    image_bytes += image->Bytes();
  }
  return child;
}

void SessionStore::Impl::CutTo(const RecordPtr& record, int64_t position) {
  record->token_ids = record->token_ids.First(position);
  const auto full = static_cast<size_t>(position / TokenSequence::kPieceTokens);
  Charge(*record, position, std::min(record->shared_pieces.size(), full));
  record->detokenizer = DetokenizerBehind(record->token_ids);
  record->intent.reset();
  DropTurnRecord(*record);
  if (record->image_rows >= position) {
    record->image_rows = 0;
    // The latest position is what files go by.
    if (record->journaled && options.images != nullptr) {
      options.images->Remove(record->name.text());
    }
  }
  if (record->image != nullptr && record->image->position >= position) {
    DropImage(*record);
  }
  // The rows of a slot or of an image on its way are found under the old key.
  by_key.erase(record->key);
  in_slot.erase(record->key);
  ended_keys.push_back(record->key);
  record->key = next_key++;
  record->in_slot = false;
  by_key[record->key] = record;
  wake_pending = true;
}

std::unique_ptr<Detokenizer> SessionStore::Impl::DetokenizerBehind(
    const TokenSequence& ids) const {
  if (options.vocabulary == nullptr) return nullptr;
  std::unique_ptr<Detokenizer> detokenizer =
      options.vocabulary->NewDetokenizer();
  for (const int32_t id : ids.Last(kTextIds)) detokenizer->Add(id);
  return detokenizer;
}

void SessionStore::Impl::RememberRequest(SessionRecord& record,
                                         const std::string& request_id) {
  const std::string& earlier = record.last_turn.request_id;
  if (!earlier.empty() && earlier != request_id) {
    record.earlier_requests.Add(earlier, options.remembered_requests);
  }
}

}  // namespace txl
