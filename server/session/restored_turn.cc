#include "server/session/restored_turn.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "model/base/status_macros.h"
#include "server/session/session_errors.h"

namespace txl {
namespace {

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
                                         const TurnIntent& intent,
                                         int64_t generated) {
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

absl::StatusOr<std::unique_ptr<Detokenizer>> Restored(
    const Vocabulary* vocabulary, const std::string& state) {
  if (vocabulary == nullptr) return nullptr;
  auto detokenizer = vocabulary->RestoreDetokenizer(state);
  if (detokenizer.ok()) return detokenizer;
  return SessionDamagedError(
      "the session's stored state of text cannot be read");
}

// Takes `now` behind the ids of the turn, which broke off. `before` is the text
// before the session's last turn, and becomes that before this one if known.
void FeedBroken(const StoredSession& stored, const TurnIntent& intent,
                std::unique_ptr<Detokenizer>& now,
                std::unique_ptr<Detokenizer>& before) {
  const int64_t position = stored.token_ids.size();
  if (GoesOn(intent, stored.record.get())) {
    now = before->Clone();
    FeedTurn(*now, stored.token_ids.Last(position - intent.start_position),
             intent.prompt_tokens);
    return;
  }
  const bool from_start =
      intent.start_position == position - stored.running_tokens;
  if (from_start) before = now->Clone();
  FeedTurn(*now, stored.token_ids.Last(stored.running_tokens),
           from_start ? intent.prompt_tokens : 0);
}

}  // namespace

absl::StatusOr<RestoredTurn> RestoreTurn(const StoredSession& stored,
                                         const Vocabulary* vocabulary) {
  RestoredTurn turn;
  turn.broke_off = stored.running_tokens > 0;
  turn.intent = stored.running;
  if (turn.broke_off && !turn.intent.has_value()) {
    turn.intent = UnknownTurn(stored);
  }
  std::unique_ptr<Detokenizer> before;
  TXL_ASSIGN_OR_RETURN(turn.detokenizer,
                       Restored(vocabulary, stored.head.detokenizer));
  if (stored.record != nullptr) {
    TXL_ASSIGN_OR_RETURN(before,
                         Restored(vocabulary, stored.record_detokenizer));
  }
  if (turn.broke_off && vocabulary != nullptr) {
    FeedBroken(stored, *turn.intent, turn.detokenizer, before);
  }
  std::shared_ptr<TurnRecord> record;
  if (turn.broke_off) {
    turn.last_turn = Interrupted(*turn.intent, stored.token_ids.size());
    record =
        BrokenRecord(stored, *turn.intent, turn.last_turn.generated_tokens);
  } else {
    turn.last_turn = stored.head.last_turn;
    if (stored.record != nullptr) {
      record = std::make_shared<TurnRecord>(*stored.record);
    }
  }
  if (record != nullptr) record->detokenizer = std::move(before);
  turn.record = std::move(record);
  return turn;
}

}  // namespace txl
