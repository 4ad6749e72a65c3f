// SessionStore: sessions that begin like another one, sessions that go back,
// and sessions that leave as a whole or come as one.

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/digest.h"
#include "server/base/error.h"
#include "server/session/session_errors.h"
#include "server/session/session_import.h"
#include "server/session/session_name.h"
#include "server/session/session_store.h"
#include "server/session/session_store_impl.h"

namespace txl {
namespace {

// LastTurn::outcome of what is no turn.
constexpr char kForked[] = "FORKED";
constexpr char kRewound[] = "REWOUND";
constexpr char kImported[] = "IMPORTED";

constexpr size_t kMostOutcomeBytes = 64;

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
  return {
      .request_id = request_id, .outcome = outcome, .start_position = position};
}

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

std::string IdOfFork(const ForkRequest& request) {
  const std::string digest = Sha256Of(
      absl::StrCat("fork ", request.session.id(), " ", request.request_id));
  return absl::BytesToHexString(digest.substr(0, 16));
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
  if (const RecordPtr made = impl_->table.Named(name)) {
    return IsWorkOf(made->last_turn, request.request_id, kForked)
               ? impl_->Info(*made)
               : absl::StatusOr<SessionInfo>(SessionExistsError());
  }
  TXL_ASSIGN_OR_RETURN(const RecordPtr parent,
                       impl_->FindIdle(request.session));
  const int64_t position = request.position.value_or(parent->position());
  TXL_RETURN_IF_ERROR(CheckPosition(position, parent->position()));
  TXL_RETURN_IF_ERROR(impl_->quota.MayAdd(name.tenant(), position));
  // In use while it is forked: an empty one might have to make room.
  impl_->table.BecomeBusy(*parent);
  absl::StatusOr<RecordPtr> child = impl_->AddBranch(
      *parent, name, position, request.ttl.value_or(parent->ttl));
  impl_->table.BecomeIdle(*parent);
  if (!child.ok()) return child.status();
  (*child)->last_turn = NoTurn(request.request_id, kForked, position);
  impl_->entries.Fork(*parent, **child);
  impl_->table.BecomeIdle(**child);
  return impl_->Info(**child);
}

absl::StatusOr<SessionInfo> SessionStore::Rewind(const RewindRequest& request) {
  StoreLock lock(impl_.get());
  TXL_ASSIGN_OR_RETURN(const RecordPtr record,
                       impl_->FindIdle(request.session));
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
  impl_->table.BecomeBusy(*record);
  impl_->CutTo(record, request.position);
  record->SetLastTurn(NoTurn(request.request_id, kRewound, request.position),
                      impl_->options.remembered_requests);
  impl_->entries.Rewind(*record);
  impl_->table.BecomeIdle(*record);
  return impl_->Info(*record);
}

absl::StatusOr<RecordPtr> SessionStore::Impl::AddBranch(SessionRecord& parent,
                                                        SessionName name,
                                                        int64_t position,
                                                        absl::Duration ttl) {
  TXL_ASSIGN_OR_RETURN(
      RecordPtr child,
      Add(std::move(name), ttl, SessionMemory::BytesOfBranch(position)));
  memory.ChargeBranch(parent, *child, position);
  child->token_ids = parent.token_ids.First(position);
  child->detokenizer = position == parent.position() && parent.detokenizer
                           ? parent.detokenizer->Clone()
                           : DetokenizerBehind(child->token_ids);
  ShareImage(parent.image, *child);
  return child;
}

void SessionStore::Impl::ShareImage(
    const std::shared_ptr<const StateImage>& image, SessionRecord& record) {
  // An image of fewer rows saves feeding so many tokens again.
  if (image != nullptr && image->position < record.position() &&
      memory.HasImageRoom(image->Bytes())) {
    memory.SetImage(record, image);
  }
}

void SessionStore::Impl::CutTo(const RecordPtr& record, int64_t position) {
  record->token_ids = record->token_ids.First(position);
  const auto full = static_cast<size_t>(position / TokenSequence::kPieceTokens);
  memory.Charge(*record, position,
                std::min(record->shared_pieces.size(), full));
  record->detokenizer = DetokenizerBehind(record->token_ids);
  record->intent.reset();
  memory.SetTurnRecord(*record, nullptr, 0);
  if (record->image_rows >= position) {
    record->image_rows = 0;
    // The latest position is what files go by.
    if (record->journaled && options.images != nullptr) {
      options.images->Remove(record->name.text());
    }
  }
  if (record->image != nullptr && record->image->position >= position) {
    memory.SetImage(*record, nullptr);
  }
  // The rows of a slot or of an image on its way are found under the old key.
  table.ChangeKey(record);
  wakeup.Ask();
}

std::unique_ptr<Detokenizer> SessionStore::Impl::DetokenizerBehind(
    const TokenSequence& ids) const {
  if (options.vocabulary == nullptr) return nullptr;
  std::unique_ptr<Detokenizer> detokenizer =
      options.vocabulary->NewDetokenizer();
  for (const int32_t id : ids.Last(kTextIds)) detokenizer->Add(id);
  return detokenizer;
}

TokenSlice SessionStore::Impl::IdsOfRows(const SessionRecord& record,
                                         int64_t rows) const {
  const int64_t count = std::min(rows, options.rebuild_ids);
  return record.token_ids.Slice(rows - count, count);
}

absl::StatusOr<SessionSnapshot> SessionStore::Snapshot(
    const SessionName& session) {
  SessionSnapshot snapshot;
  StoreLock lock(impl_.get());
  TXL_ASSIGN_OR_RETURN(const RecordPtr record, impl_->FindIdle(session));
  snapshot.head = HeadOf(*record, impl_->clock->Now());
  snapshot.token_ids = record->token_ids.Slice(0, record->position());
  snapshot.state = record->image;
  return snapshot;
}

absl::StatusOr<SessionInfo> SessionStore::Import(
    const SessionName& name, std::optional<absl::Duration> ttl,
    ImportedSession session) {
  TXL_ASSIGN_OR_RETURN(SessionName made, NameOfNew(name, ttl, impl_->options));
  const absl::Duration kept = std::clamp(
      session.head.ttl, impl_->options.min_ttl, impl_->options.max_ttl);
  std::shared_ptr<const StateImage> image;
  if (session.state.has_value()) {
    image = std::make_shared<const StateImage>(*std::move(session.state));
  }
  StoreLock lock(impl_.get());
  impl_->Expire();
  if (impl_->table.Named(made) != nullptr) return SessionExistsError();
  const int64_t tokens = session.token_ids.size();
  TXL_RETURN_IF_ERROR(impl_->quota.MayAdd(made.tenant(), tokens));
  TXL_ASSIGN_OR_RETURN(const RecordPtr record,
                       impl_->Add(std::move(made), ttl.value_or(kept),
                                  TokenSequence::BytesFor(tokens)));
  record->token_ids = std::move(session.token_ids);
  impl_->memory.Charge(*record, tokens);
  const std::string& state = session.head.detokenizer;
  if (record->detokenizer != nullptr && !state.empty() &&
      !record->detokenizer->SetState(state)) {
    record->detokenizer = impl_->DetokenizerBehind(record->token_ids);
  }
  record->earlier_requests = NewestOf(std::move(session.head.earlier_requests),
                                      impl_->options.remembered_requests);
  record->last_turn = IsOfAServer(session.head.last_turn)
                          ? std::move(session.head.last_turn)
                          : NoTurn("", kImported, tokens);
  impl_->ShareImage(image, *record);
  impl_->entries.Create(*record);
  impl_->table.BecomeIdle(*record);
  return impl_->Info(*record);
}

}  // namespace txl
