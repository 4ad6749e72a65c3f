// Sequence: tokens of the turn that are known before it samples, those that the
// session holds of an earlier run and those that are adopted.

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/scheduler/sequence.h"

namespace txl {

// What stop texts and the detokenizer hold back is not kept: it is found again
// from the ids.
void Sequence::AddResumed() {
  const std::vector<int32_t> all =
      turn_.lease.token_ids().Last(turn_.lease.position() - start_position_);
  const absl::Span<const int32_t> turn_ids(all);
  text_.AddInput(turn_ids.first(prompt_tokens_));
  for (const int32_t id : turn_ids.subspan(prompt_tokens_)) {
    NoteEnd(text_.AddGenerated(id));
  }
  said_ = turn_.resumed->tokens;
}

void Sequence::AddAdopted() {
  adopted_.reserve(turn_.adopted.size());
  for (const int32_t id : turn_.adopted) {
    if (known_end_.has_value()) {
      contradicted_ = true;
      return;
    }
    TurnText::Piece piece = text_.AddGenerated(id);
    TokenEvent event;
    event.index = static_cast<int32_t>(resumed_ + adopted_.size());
    event.token_id = id;
    event.text = std::move(piece.text);
    event.held_back = piece.held_back;
    adopted_.push_back(std::move(event));
    NoteEnd(std::move(piece));
  }
}

void Sequence::NoteEnd(TurnText::Piece piece) {
  if (!piece.reason.has_value()) return;
  known_end_ = piece.reason;
  matched_stop_text_ = std::move(piece.matched_stop_text);
}

int64_t Sequence::RowsToFeed() const {
  const int64_t rows = InputRows(turn_) + std::max<int64_t>(context_ - 1, 0);
  if (!known_end_.has_value()) return rows;
  // Nothing is sampled: the very last id is left to be fed. Where the session
  // holds all of the turn there is nothing to do.
  return turn_.adopted.empty() ? 0 : rows - 1;
}

absl::Span<const TokenEvent> Sequence::Replayed() const {
  if (turn_.resumed == nullptr) return {};
  const absl::Span<const TokenEvent> tokens = turn_.resumed->tokens;
  return tokens.subspan(std::min<int64_t>(turn_.received, resumed_));
}

std::vector<int32_t> Sequence::Uncommitted() const {
  std::vector<int32_t> ids;
  if (committed_) return ids;
  ids.reserve(turn_.input.size() + turn_.adopted.size() + 1);
  ids = turn_.input;
  ids.insert(ids.end(), turn_.adopted.begin(), turn_.adopted.end());
  return ids;
}

void Sequence::BecomeCommitted() {
  committed_ = true;
  if (!turn_.identity.named()) return;
  said_.insert(said_.end(), std::make_move_iterator(adopted_.begin()),
               std::make_move_iterator(adopted_.end()));
}

}  // namespace txl
