#pragma once

// What a stored session's last turn left: of one that a crash broke off, what
// can be said of it as far as it came.

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "model/text/vocabulary.h"
#include "server/session/session_info.h"
#include "server/session/session_journal.h"
#include "server/session/turn_record.h"

namespace txl {

struct RestoredTurn {
  bool broke_off = false;
  std::optional<TurnIntent> intent;          // of the turn that began last
  LastTurn last_turn;                        // INTERRUPTED where it broke off
  std::unique_ptr<Detokenizer> detokenizer;  // behind all ids; null: see below
  std::shared_ptr<const TurnRecord> record;  // null: no retry is known
};

// `vocabulary` null: without detokenizers. DATA_LOSS SESSION_DAMAGED.
absl::StatusOr<RestoredTurn> RestoreTurn(const StoredSession& stored,
                                         const Vocabulary* vocabulary);

}  // namespace txl
