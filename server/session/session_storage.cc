// SessionStore: sessions that leave memory and come back.

#include <algorithm>
#include <memory>
#include <utility>

#include "model/base/status_macros.h"
#include "server/base/error.h"
#include "server/session/session_errors.h"
#include "server/session/session_id.h"
#include "server/session/session_store.h"
#include "server/session/session_store_impl.h"

namespace txl {
namespace {

// Sessions that are looked at for one that may leave memory.
constexpr int kLookedAtForAway = 16;

absl::Status DamagedTextError() {
  ErrorDetails details;
  details.reason = "SESSION_DAMAGED";
  return MakeError(absl::StatusCode::kDataLoss,
                   "the session's stored state of text cannot be read",
                   details);
}

// What the ids of a turn make of a detokenizer: its input is a text of its own.
void FeedTurn(Detokenizer& detokenizer, absl::Span<const int32_t> ids,
              int64_t prompt_tokens) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (at == 0 && prompt_tokens > 0) detokenizer.Flush();
    detokenizer.Add(ids[i]);
    if (at == prompt_tokens - 1) detokenizer.Flush();
  }
}

LastTurn Interrupted(const TurnIntent& intent, int64_t position) {
  LastTurn last;
  last.request_id = intent.identity.request_id;
  last.outcome = "INTERRUPTED";
  last.start_position = intent.start_position;
  last.prompt_tokens = intent.prompt_tokens;
  last.generated_tokens =
      position - intent.start_position - intent.prompt_tokens;
  return last;
}

// The turn had been broken before, and the same request went on with it.
bool GoesOn(const TurnIntent& intent, const TurnRecord* record) {
  return record != nullptr && intent.identity.named() &&
         record->identity.request_id == intent.identity.request_id &&
         record->start_position == intent.start_position;
}

// A turn of which nobody said that it began: one that fed what it took on.
TurnIntent UnknownTurn(const StoredSession& stored) {
  TurnIntent intent;
  intent.prompt_tokens = stored.running_tokens;
  intent.start_position = stored.token_ids.size() - stored.running_tokens;
  return intent;
}

// What a turn with a name left, as far as it came.
std::shared_ptr<TurnRecord> BrokenRecord(const StoredSession& stored,
                                         int64_t generated) {
  const TurnIntent& intent = *stored.running;
  if (!intent.identity.named()) return nullptr;
  auto record = std::make_shared<TurnRecord>();
  record->identity = intent.identity;
  record->start_position = intent.start_position;
  record->prompt_tokens = intent.prompt_tokens;
  record->seed = intent.seed;
  if (GoesOn(intent, stored.record.get())) {
    record->tokens = stored.record->tokens;
  }
  record->tokens.insert(record->tokens.end(), stored.running_events.begin(),
                        stored.running_events.end());
  const bool whole = static_cast<int64_t>(record->tokens.size()) == generated;
  return whole ? record : nullptr;
}

}  // namespace

void SessionStore::Prepare(const SessionName& session,
                           std::function<void(const absl::Status&)> then) {
  SharedJournal* const shared = impl_->options.shared;
  std::shared_ptr<SessionClaim> held;
  {
    absl::MutexLock lock(&impl_->mutex);
    const auto found = impl_->by_name.find(session);
    const bool here = found != impl_->by_name.end();
    if (!here || (shared != nullptr && !found->second->busy)) {
      std::vector<std::function<void(const absl::Status&)>>& waiting =
          impl_->loading[session];
      waiting.push_back(std::exchange(then, nullptr));
      if (waiting.size() > 1) return;
      if (here) held = found->second->claim;
    }
  }
  if (then != nullptr) return then(absl::OkStatus());
  if (shared != nullptr) return impl_->Look(session, std::move(held));
  impl_->options.journal->Load(
      session.text(), [this, session](absl::StatusOr<StoredSession> stored) {
        if (!stored.ok()) {
          const bool unknown = absl::IsNotFound(stored.status());
          return impl_->EndLoad(session,
                                unknown ? absl::OkStatus() : stored.status());
        }
        impl_->Bring(session, *std::move(stored));
      });
}

void SessionStore::Impl::Bring(const SessionName& name, StoredSession stored) {
  const auto held = std::make_shared<StoredSession>(std::move(stored));
  const auto restore = [this, name, held](std::optional<KeptImage> kept) {
    absl::Status status;
    {
      StoreLock lock(this);
      status = Restore(std::move(*held), std::move(kept));
    }
    EndLoad(name, status);
  };
  if (options.images == nullptr) return restore(std::nullopt);
  options.images->Get(name.text(), restore);
}

void SessionStore::Impl::EndLoad(const SessionName& name,
                                 const absl::Status& status) {
  std::vector<std::function<void(const absl::Status&)>> waiting;
  {
    absl::MutexLock lock(&mutex);
    waiting = std::move(loading.extract(name).mapped());
  }
  for (const auto& then : waiting) then(status);
}

bool SessionStore::MayBeStored(const SessionName& session, bool acquires) {
  if (impl_->options.journal == nullptr) return false;
  if (!ValidateSessionId(session.id()).ok()) return false;
  absl::MutexLock lock(&impl_->mutex);
  const auto found = impl_->by_name.find(session);
  const bool shared = impl_->options.shared != nullptr;
  if (found == impl_->by_name.end()) {
    return shared || !impl_->ended.Find(session.text()).has_value();
  }
  found->second->loaded = impl_->clock->Monotonic();  // it is about to be used
  return shared && !acquires && !found->second->busy;
}

absl::Status SessionStore::Impl::Restore(StoredSession stored,
                                         std::optional<KeptImage> kept) {
  const StoredHead& head = stored.head;
  const SessionName name = SessionName::OfText(head.session_id);
  if (const auto here = by_name.find(name); here != by_name.end()) {
    if (options.shared == nullptr || here->second->busy) {
      return absl::OkStatus();
    }
    LetGo(here->second);
  }
  const absl::Time now = clock->Now();
  const int64_t position = stored.token_ids.size();
  if (head.last_use + head.ttl <= now) {
    EndStored(name, position);
    return absl::OkStatus();
  }
  if (stored.running_tokens > 0 && !stored.running.has_value()) {
    stored.running = UnknownTurn(stored);
  }
  TXL_ASSIGN_OR_RETURN(RestoredText text, TextOf(stored));
  TXL_RETURN_IF_ERROR(
      MakeRoom(kSessionRecordBytes + TokenSequence::BytesFor(position), false));
  TXL_ASSIGN_OR_RETURN(const RecordPtr record, Add(name, head.ttl));
  --created_count;
  ++loaded_count;
  Charge(*record, position);
  if (options.shared == nullptr) {
    quota.Remove(name.tenant(), position);  // where it was
  } else {
    record->claim = stored.claim;
    record->open_turn = stored.running_tokens > 0;
    options.shared->Hold(name.text(), record->claim);
  }
  record->journaled = true;
  record->create_time = head.create_time;
  record->last_use_time = head.last_use;
  record->loaded = clock->Monotonic();
  record->last_use =
      record->loaded - std::max(now - head.last_use, absl::ZeroDuration());
  record->token_ids = std::move(stored.token_ids);
  record->durable.Start(0, position);
  record->detokenizer = std::move(text.now);
  record->last_turn = head.last_turn;
  record->earlier_requests = RequestHistory(head.earlier_requests);
  RestoreTurn(stored, std::move(text.before_turn), *record);
  if (kept.has_value()) RestoreImage(*kept, *record);
  Park(*record);
  return absl::OkStatus();
}

absl::StatusOr<SessionStore::Impl::RestoredText> SessionStore::Impl::TextOf(
    const StoredSession& stored) const {
  RestoredText text;
  const Vocabulary* const vocabulary = options.vocabulary;
  if (vocabulary == nullptr) return text;
  const auto restored = [vocabulary](const std::string& state)
      -> absl::StatusOr<std::unique_ptr<Detokenizer>> {
    auto detokenizer = vocabulary->RestoreDetokenizer(state);
    if (!detokenizer.ok()) return DamagedTextError();
    return detokenizer;
  };
  TXL_ASSIGN_OR_RETURN(text.now, restored(stored.head.detokenizer));
  if (stored.record != nullptr) {
    TXL_ASSIGN_OR_RETURN(text.before_turn, restored(stored.record_detokenizer));
  }
  if (stored.running_tokens == 0) return text;
  const TurnIntent& intent = *stored.running;
  const int64_t position = stored.token_ids.size();
  const int64_t before = position - stored.running_tokens;
  if (GoesOn(intent, stored.record.get())) {
    text.now = text.before_turn->Clone();
    FeedTurn(*text.now, stored.token_ids.Last(position - intent.start_position),
             intent.prompt_tokens);
    return text;
  }
  const bool from_start = intent.start_position == before;
  if (from_start) text.before_turn = text.now->Clone();
  FeedTurn(*text.now, stored.token_ids.Last(stored.running_tokens),
           from_start ? intent.prompt_tokens : 0);
  return text;
}

void SessionStore::Impl::RestoreTurn(const StoredSession& stored,
                                     std::shared_ptr<const Detokenizer> before,
                                     SessionRecord& record) {
  record.intent = stored.running;
  std::shared_ptr<TurnRecord> turn;
  if (stored.running_tokens > 0) {
    const LastTurn last = Interrupted(*stored.running, record.position());
    RememberRequest(record, last.request_id);
    record.last_turn = last;
    turn = BrokenRecord(stored, last.generated_tokens);
  } else if (stored.record != nullptr) {
    turn = std::make_shared<TurnRecord>(*stored.record);
  }
  if (turn != nullptr) turn->detokenizer = std::move(before);
  if (stored.running_tokens > 0 && !record.open_turn) EnterEnd(record, turn);
  if (turn == nullptr) return;
  const int64_t bytes = turn->Bytes();
  KeepTurnRecord(record, std::move(turn), bytes);
}

void SessionStore::Impl::RestoreImage(const KeptImage& kept,
                                      SessionRecord& record) {
  const int64_t rows = kept.image->position;
  const bool fits =
      rows > 0 && rows < record.position() &&
      kept.ids_digest == DigestOfIds(IdsOfRows(record, rows), rows);
  if (!fits) {
    options.images->Remove(record.name.text());
    return;
  }
  record.image_rows = rows;
  if (!MakeImageRoom(kept.image->Bytes())) return;
  record.image = kept.image;
  image_bytes += kept.image->Bytes();
}

bool SessionStore::Impl::MakeImageRoom(int64_t bytes) {
  while (bytes > options.image_bytes - image_bytes) {
    if (!StoreOldestAway(options.empty_grace)) return false;
  }
  return true;
}

bool SessionStore::Impl::MayStoreAway(const SessionRecord& record,
                                      absl::Duration unused) const {
  const absl::Duration used = std::max(record.last_use, record.loaded);
  return clock->Monotonic() - used >= unused &&
         record.durable.Settled(DurableOf(record.name));
}

bool SessionStore::Impl::StoreOldestAway(absl::Duration unused) {
  int looked_at = 0;
  for (const auto& [last_use, key] : away_idle) {
    const RecordPtr record = by_key.at(key);
    if (MayStoreAway(*record, unused)) {
      LetGo(record);
      return true;
    }
    if (++looked_at == kLookedAtForAway) break;
  }
  return false;
}

void SessionStore::Impl::LetGo(RecordPtr record) {
  Forget(record);
  if (options.shared == nullptr) {
    quota.Add(record->name.tenant(), record->position());  // where it goes
  }
  ++stored_away_count;
}

std::vector<SessionName> SessionStore::ImagesDue(int64_t tokens) const {
  std::vector<SessionName> due;
  absl::MutexLock lock(&impl_->mutex);
  for (const uint64_t key : impl_->in_slot) {
    const SessionRecord& record = *impl_->by_key.at(key);
    const int64_t rows = record.position() - 1;
    if (!record.busy && record.journaled && rows > 0 &&
        rows - record.image_rows >= tokens) {
      due.push_back(record.name);
    }
  }
  return due;
}

void SessionStore::SetInSlot(uint64_t key, bool in_slot) {
  absl::MutexLock lock(&impl_->mutex);
  const auto found = impl_->by_key.find(key);
  if (found == impl_->by_key.end()) return;
  SessionRecord& record = *found->second;
  if (!record.busy) impl_->Unpark(record);
  record.in_slot = in_slot;
  if (!record.busy) impl_->Park(record);
  if (in_slot) {
    impl_->in_slot.insert(key);
  } else {
    impl_->in_slot.erase(key);
  }
}

}  // namespace txl
