#include "server/scheduler/sequence.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace txl {
namespace {

bool Scores(const Turn& turn) {
  return turn.kind == TurnKind::kScore ||
         (turn.kind == TurnKind::kAppend && turn.return_scored);
}

int64_t StartPosition(const Turn& turn) {
  return turn.resumed != nullptr ? turn.resumed->start_position
                                 : turn.lease.position();
}

int64_t PromptTokens(const Turn& turn) {
  return turn.resumed != nullptr ? turn.resumed->prompt_tokens
                                 : static_cast<int64_t>(turn.input.size());
}

int64_t ResumedTokens(const Turn& turn) {
  return turn.resumed != nullptr
             ? static_cast<int64_t>(turn.resumed->tokens.size())
             : 0;
}

int64_t LongestAlternative(const Turn& turn) {
  size_t longest = 0;
  for (const auto& ids : turn.alternatives) {
    longest = std::max(longest, ids.size());
  }
  return static_cast<int64_t>(longest);
}

// The session's state of text before the turn.
std::shared_ptr<const Detokenizer> StartDetokenizer(const Turn& turn) {
  if (turn.resumed != nullptr) return turn.resumed->detokenizer;
  return turn.lease.CloneDetokenizer();
}

std::unique_ptr<Detokenizer> Clone(const Detokenizer* detokenizer) {
  return detokenizer == nullptr ? nullptr : detokenizer->Clone();
}

}  // namespace

int64_t InputRows(const Turn& turn) {
  const int64_t ids = turn.fed_tokens() + LongestAlternative(turn) +
                      (turn.lease.position() > 0 ? 1 : 0);
  return turn.kind == TurnKind::kGenerate ? ids : std::max<int64_t>(ids - 1, 0);
}

int64_t RowsBeforeCommit(const Turn& turn, int32_t depth) {
  if (turn.kind == TurnKind::kSave) return std::numeric_limits<int64_t>::max();
  const int64_t rows = InputRows(turn);
  if (turn.kind != TurnKind::kGenerate) return rows;
  return rows + std::min(depth, turn.stop.max_tokens) - 1;
}

int64_t SkippableRows(const Turn& turn) {
  const bool begins = turn.lease.position() == 0 && turn.resumed == nullptr &&
                      turn.kind != TurnKind::kSave;
  if (!begins || !turn.prefix_tenant.has_value()) return 0;
  // A row of the input samples, or scores what is adopted.
  return std::max<int64_t>(std::ssize(turn.input) - 1, 0);
}

TurnEnd EndOfTurn(const Turn& turn, absl::Duration submitted,
                  absl::Duration now) {
  TurnEnd end;
  end.seconds = absl::ToDoubleSeconds(now - submitted);
  end.prompt_tokens = InputTokens(turn);
  end.tenant = turn.tenant_counts;
  if (turn.kind == TurnKind::kGenerate) end.generated_tokens = 0;
  if (turn.cancel == nullptr) return end;
  if (const auto when = turn.cancel->when(); when.has_value()) {
    // It may have come after the caller looked at the clock.
    end.cancelled_seconds =
        absl::ToDoubleSeconds(std::max(now - *when, absl::ZeroDuration()));
  }
  return end;
}

Sequence::Sequence(QueuedTurn queued, int64_t rebuild_ids, absl::Duration now,
                   const std::optional<BeatPositions>& beats)
    : turn_(std::move(queued.turn)),
      start_position_(StartPosition(turn_)),
      prompt_tokens_(PromptTokens(turn_)),
      resumed_(ResumedTokens(turn_)),
      known_(resumed_ + static_cast<int64_t>(turn_.adopted.size())),
      start_detokenizer_(StartDetokenizer(turn_)),
      submitted_(queued.submitted),
      admitted_(now),
      text_(turn_.stop, Clone(start_detokenizer_.get())) {
  if (beats.has_value()) counter_.emplace(*beats);
  if (Scores(turn_)) scores_.reserve(turn_.input.size());
  if (turn_.resumed == nullptr) {
    input_pieces_ = text_.AddInput(turn_.input);
  } else {
    AddResumed();
  }
  AddAdopted();
  FeedSession(rebuild_ids);
  feed_.insert(feed_.end(), turn_.input.begin(), turn_.input.end());
  feed_.insert(feed_.end(), turn_.adopted.begin(), turn_.adopted.end());
  scored_rows_ = static_cast<int64_t>(turn_.adopted.size());
  input_rows_ = RowsToFeed();
  if (turn_.kind == TurnKind::kAlternatives) {
    // The last id is fed once for every id that may follow it.
    input_rows_ = std::max<int64_t>(static_cast<int64_t>(feed_.size()) - 1, 0);
  }
}

void Sequence::Return(int64_t rebuild_ids) {
  FeedSession(rebuild_ids);
  input_rows_ = context_;
  planned_ = 0;
  collected_ = 0;
  generated_before_ = generated_;
  advanced_from_ = generated_ + 1;
  scored_rows_ = 0;
}

void Sequence::FeedSession(int64_t ids) {
  context_ = std::min(turn_.lease.position(), std::max<int64_t>(ids, 1));
  first_position_ = turn_.lease.position() - context_;
  feed_ = turn_.lease.token_ids().Last(context_);
  rebuilt_ += std::max<int64_t>(context_ - 1, 0);
  counted_ = 0;
  if (counter_.has_value()) counter_ = CounterAt(first_position_);
}

BeatCounter Sequence::CounterAt(int64_t position) const {
  BeatCounter counter(counter_->positions());
  const TokenSequence& session = turn_.lease.token_ids();
  for (int64_t i = 0; i < position; ++i) {
    const int64_t in_input = i - session.size();
    counter.Add(in_input < 0 ? session[i] : turn_.input[in_input]);
  }
  return counter;
}

void Sequence::CountTo(int64_t row) {
  for (; counted_ < row; ++counted_) {
    if (counted_ < input_rows_) {
      counter_->Add(feed_[counted_]);
      continue;
    }
    const int64_t at = first_position_ + counted_;
    if (at >= turn_.lease.position()) return;  // not sampled yet
    counter_->Add(turn_.lease.token_ids()[at]);
  }
}

TurnStarted Sequence::Started() const {
  return {.position = start_position_,
          .prompt_tokens = prompt_tokens_,
          .seed = turn_.sampling.seed,
          .replayed_tokens = known_};
}

SequencePhase Sequence::phase() const {
  if (planned_ < input_rows_) return SequencePhase::kPrompting;
  if (lanes_ != nullptr && lanes_->rows_now() > 0) {
    return SequencePhase::kPrompting;
  }
  return Samples() && tokens_plannable() > 0 ? SequencePhase::kDecoding
                                             : SequencePhase::kCollecting;
}

int64_t Sequence::tokens_plannable() const {
  // The row of generated token j samples token j + 1; the last one is not fed.
  const int64_t rows =
      input_rows_ + turn_.stop.max_tokens - known_ - generated_before_ - 1;
  return std::max<int64_t>(rows - planned_, 0);
}

int64_t Sequence::prompt_rows_left() const {
  if (in_lanes()) return lanes_->rows_now();
  return std::max<int64_t>(input_rows_ - planned_, 0);
}

int64_t Sequence::tokens_in_flight() const {
  if (!Samples()) return 0;
  return std::max<int64_t>(planned_ - input_rows_ + 1, 0) -
         (generated_ - generated_before_);
}

int64_t Sequence::tokens_unused() const {
  if (turn_.kind != TurnKind::kGenerate) return skipped_;
  return skipped_ +
         std::max<int64_t>(turn_.stop.max_tokens - known_ - generated_, 0);
}

bool Sequence::all_collected() const {
  if (lanes_ != nullptr) {
    return in_lanes() && lanes_->rows_now() == 0 && collected_ == planned_;
  }
  return !Samples() && collected_ == input_rows_;
}

int64_t Sequence::rows_past_commit() const {
  const int64_t rows = std::max<int64_t>(turn_.lease.position() - 1, 0);
  if (lanes_ == nullptr) return first_position_ + planned_ - rows;
  if (lanes_->cleared()) return std::numeric_limits<int64_t>::max();
  const int64_t fed = first_position_ + std::min(planned_, input_rows_);
  return std::max(fed, lanes_->written_end()) - rows;
}

void Sequence::PlanRows(int64_t count, int32_t slot,
                        std::vector<StepRow>& rows) {
  for (int64_t i = 0; i < count; ++i, ++planned_) {
    StepRow row;
    row.slot = slot;
    row.position = first_position_ + planned_;
    row.kind = KindOf(planned_);
    row.token_id = IdAt(planned_);
    if (row.kind == RowKind::kScore) row.score_target = feed_[planned_ + 1];
    if (row.kind == RowKind::kScore || row.kind == RowKind::kDecode) {
      row.top_logprobs = turn_.top_logprobs;
      row.logprob_ids = turn_.logprob_ids;
    }
    if (counter_.has_value()) {
      CountTo(planned_);
      row.ticks = counter_->ticks();
    }
    rows.push_back(row);
  }
}

void Sequence::PlanLaneRows(int64_t count, std::vector<StepRow>& rows,
                            std::vector<int32_t>& clear) {
  planned_ += lanes_->PlanRows(count, rows, clear);
}

SlotSampling Sequence::Sampling() const {
  SlotSampling sampling;
  sampling.params = turn_.sampling;
  // The id that the sampling row feeds is always among them.
  const auto wanted = std::max<int64_t>(turn_.sampling.penalty_window, 1);
  const std::vector<int32_t> fed = Uncommitted();
  const auto from_fed =
      std::min<int64_t>(wanted, static_cast<int64_t>(fed.size()));
  sampling.recent_ids = turn_.lease.token_ids().Last(wanted - from_fed);
  sampling.recent_ids.insert(sampling.recent_ids.end(), fed.end() - from_fed,
                             fed.end());
  sampling.banned_ids = turn_.stop.stop_token_ids;
  if (!turn_.stop.ignore_end_token) {
    sampling.banned_ids.insert(sampling.banned_ids.end(),
                               turn_.stop.end_token_ids.begin(),
                               turn_.stop.end_token_ids.end());
  }
  sampling.min_position =
      start_position_ + prompt_tokens_ + turn_.sampling.min_tokens;
  return sampling;
}

void Sequence::CollectRow(RowKind kind) {
  ++collected_;
  pending_.Add(kind);
}

RowCounts Sequence::TakePending() {
  return std::exchange(pending_, RowCounts());
}

void Sequence::CollectScore(RowResult result) {
  CollectRow(RowKind::kScore);
  if (turn_.kind == TurnKind::kGenerate) {
    TokenEvent& event = adopted_[adopted_scored_++];
    event.logprob = result.logprob;
    event.top_logprobs = std::move(result.top_logprobs);
    return;
  }
  if (lanes_ != nullptr) return lanes_->Collect(result.logprob);
  ScoredToken token;
  token.token_id = result.token_id;
  token.logprob = result.logprob;
  token.top_logprobs = std::move(result.top_logprobs);
  scores_.push_back(std::move(token));
}

bool Sequence::CommitInput(absl::Duration now) {
  input_done_ = now;
  const std::vector<int32_t> ids = Uncommitted();
  if (ids.empty()) return false;
  if (turn_.kind == TurnKind::kAppend) {
    turn_.lease.AppendWithEnd(ids);
  } else {
    const bool named = turn_.identity.named();
    turn_.lease.Append(ids, named ? adopted_ : std::vector<TokenEvent>());
  }
  BecomeCommitted();
  return true;
}

Sequence::Generated Sequence::CommitToken(RowResult result,
                                          absl::Duration now) {
  CollectRow(RowKind::kDecode);
  Generated generated;
  generated.time.first = generated_ == 0;
  generated.time.seconds = absl::ToDoubleSeconds(
      now - (generated.time.first ? submitted_ : last_token_));
  generated.time.tenant = turn_.tenant_counts;
  last_token_ = now;
  TurnText::Piece piece = text_.AddGenerated(result.token_id);
  matched_stop_text_ = std::move(piece.matched_stop_text);
  generated.event.index = static_cast<int32_t>(known_ + generated_++);
  generated.event.token_id = result.token_id;
  generated.event.text = std::move(piece.text);
  generated.event.held_back = piece.held_back;
  generated.event.logprob = result.logprob;
  generated.event.top_logprobs = std::move(result.top_logprobs);
  generated.reason = piece.reason;
  const bool named = turn_.identity.named();
  if (committed_) {
    turn_.lease.Append({result.token_id},
                       absl::MakeConstSpan(&generated.event, named ? 1 : 0));
  } else {
    std::vector<int32_t> ids = Uncommitted();
    ids.push_back(result.token_id);
    std::vector<TokenEvent> said;
    if (named) {
      said = adopted_;
      said.push_back(generated.event);
    }
    turn_.lease.Append(ids, said);
    BecomeCommitted();
    input_done_ = now;
    generated.time.prompt_tokens = static_cast<int64_t>(turn_.input.size());
  }
  if (named) said_.push_back(generated.event);
  return generated;
}

TurnEnd Sequence::EndAt(absl::Duration now) const {
  TurnEnd end = EndOfTurn(turn_, submitted_, now);
  if (generated_ > 0) end.generated_tokens = generated_;
  if (generated_ > 1) {
    end.seconds_per_token = absl::ToDoubleSeconds(last_token_ - *input_done_) /
                            static_cast<double>(generated_ - 1);
  }
  return end;
}

std::vector<ScoredToken> Sequence::TakeScores() {
  if (lanes_ != nullptr) return TakeLaneScores();
  if (!Scores(turn_)) return {};
  if (start_position_ == 0 && !turn_.input.empty()) {
    // Nothing stands before the very first id, so it has no probability.
    ScoredToken first;
    first.token_id = turn_.input.front();
    scores_.insert(scores_.begin(), std::move(first));
  }
  assert(scores_.size() == turn_.input.size());
  for (size_t i = 0; i < scores_.size(); ++i) {
    scores_[i].text = std::move(input_pieces_[i]);
  }
  if (turn_.identity.named()) said_scores_ = scores_;
  return std::move(scores_);
}

TurnFinished Sequence::Finish(FinishReason reason, absl::Duration now) {
  TurnFinished finished;
  finished.reason = reason;
  finished.position = turn_.lease.position();
  if (turn_.kind == TurnKind::kGenerate) finished.text = text_.TakeRest();
  finished.matched_stop_text = matched_stop_text_;
  finished.prompt_tokens = prompt_tokens_;
  finished.generated_tokens = known_ + generated_;
  finished.cached_tokens = skipped_;
  finished.rebuilt_tokens = rebuilt_;
  const absl::Duration input_done = input_done_.value_or(now);
  finished.timing.queued_seconds =
      absl::ToDoubleSeconds(admitted_ - submitted_);
  finished.timing.prefill_seconds =
      absl::ToDoubleSeconds(input_done - admitted_);
  finished.timing.decode_seconds = absl::ToDoubleSeconds(now - input_done);
  return finished;
}

void Sequence::RecordEnd(const std::string& outcome,
                         const TurnFinished* finished) {
  // A turn that the session holds whole had only its end to be told.
  const bool ends = finished != nullptr && known_end_.has_value();
  if (!committed_ && !ends) return;
  LastTurn last;
  last.request_id = turn_.identity.request_id;
  last.outcome = outcome;
  last.start_position = start_position_;
  last.prompt_tokens = prompt_tokens_;
  last.generated_tokens = committed_ ? known_ + generated_ : resumed_;
  turn_.lease.SetDetokenizer(text_.TakeDetokenizer());
  turn_.lease.SetLastTurn(std::move(last), MakeRecord(finished));
}

std::shared_ptr<const TurnRecord> Sequence::MakeRecord(
    const TurnFinished* finished) {
  if (!turn_.identity.named()) return nullptr;
  auto record = std::make_shared<TurnRecord>();
  record->identity = turn_.identity;
  record->start_position = start_position_;
  record->prompt_tokens = prompt_tokens_;
  record->seed = turn_.sampling.seed;
  record->tokens = std::move(said_);
  record->scored = std::move(said_scores_);
  // One that the server's end broke off goes on where it is sent again.
  const bool ends =
      finished != nullptr && finished->reason != FinishReason::kServerDrain;
  if (ends) record->finished = *finished;
  record->detokenizer = std::move(start_detokenizer_);
  return record;
}

int32_t Sequence::IdAt(int64_t row) const {
  if (row < input_rows_) return feed_[row];
  // The row after the newest committed token feeds it; later ones feed what the
  // device has sampled meanwhile.
  const bool known = row - input_rows_ == generated_ - generated_before_ - 1;
  return known ? turn_.lease.token_ids().back() : kLastSampled;
}

RowKind Sequence::KindOf(int64_t row) const {
  if (row < context_ - 1) return RowKind::kRebuild;
  if (Scores(turn_)) return RowKind::kScore;
  // The row of the last id that is fed samples, where anything is sampled.
  const int64_t last = static_cast<int64_t>(feed_.size()) - 1;
  if (turn_.kind != TurnKind::kGenerate || row < last - scored_rows_) {
    return RowKind::kPrefill;
  }
  return row < last ? RowKind::kScore : RowKind::kDecode;
}

// Sequence: rows that are in the slot before the turn.

int64_t Sequence::SkippableRows() const {
  return planned_ > 0 || committed_ ? 0 : txl::SkippableRows(turn_);
}

void Sequence::Skip(int64_t rows, const PrefixScores* scores) {
  assert(rows <= SkippableRows());
  planned_ = collected_ = skipped_ = rows;
  if (!scores_input()) return;
  for (int64_t i = 0; i < rows; ++i) {
    ScoredToken token;
    token.token_id = turn_.input[i + 1];
    token.logprob = scores->logprobs[i];
    const std::vector<TokenLogprob>& top = scores->top_logprobs[i];
    token.top_logprobs.assign(top.begin(), top.begin() + turn_.top_logprobs);
    scores_.push_back(std::move(token));
  }
}

bool Sequence::scores_input() const { return Scores(turn_); }

std::shared_ptr<const PrefixScores> Sequence::InputScores() const {
  // Ids that were asked for stand among the alternatives.
  if (!Scores(turn_) || turn_.logprob_ids != nullptr) return nullptr;
  auto scores = std::make_shared<PrefixScores>();
  for (const ScoredToken& token : scores_) {
    scores->logprobs.push_back(*token.logprob);
    scores->top_logprobs.push_back(token.top_logprobs);
  }
  return scores;
}

// Sequence: tokens that are guessed.

void Sequence::PlanGuesses(absl::Span<const int32_t> ids, int32_t slot,
                           std::vector<StepRow>& rows) {
  const size_t first = rows.size();
  // As if the device were to say what they feed.
  PlanRows(static_cast<int64_t>(ids.size()), slot, rows);
  for (size_t i = 0; i < ids.size(); ++i) rows[first + i].token_id = ids[i];
  if (!counter_.has_value()) return;
  // Behind the last known token, without keeping what may be rejected.
  BeatCounter guessed = *counter_;
  const std::vector<int32_t> ticks = guessed.AddAll(ids);
  for (size_t i = 0; i < ids.size(); ++i) rows[first + i].ticks = ticks[i];
}

// Sequence: tokens of the turn that are known before it samples, those that the
// session holds of an earlier run and those that are adopted.

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

// Sequence: alternatives that are scored in lanes.

void Sequence::OpenLanes(const RunnerInfo& info, int32_t slot) {
  ScoringLanesOptions options;
  const int64_t position = turn_.lease.position();
  options.before =
      turn_.lease.token_ids().Last(std::min(position, info.rebuild_ids));
  options.before.insert(options.before.end(), turn_.input.begin(),
                        turn_.input.end());
  const auto ids = static_cast<int64_t>(options.before.size());
  options.before.erase(
      options.before.begin(),
      options.before.begin() + std::max<int64_t>(ids - info.rebuild_ids, 0));
  options.root = position + static_cast<int64_t>(turn_.input.size()) - 1;
  options.spare_rows = info.spare_rows;
  options.slot = slot;
  if (counter_.has_value()) {
    options.counter = CounterAt(options.root + 1 - std::ssize(options.before));
  }
  lanes_ =
      std::make_unique<ScoringLanes>(&turn_.alternatives, std::move(options));
}

std::vector<ScoredToken> Sequence::TakeLaneScores() {
  std::vector<ScoredToken> scores;
  const auto logprobs = lanes_->TakeLogprobs();
  for (size_t i = 0; i < logprobs.size(); ++i) {
    for (size_t j = 0; j < logprobs[i].size(); ++j) {
      ScoredToken token;
      token.token_id = turn_.alternatives[i][j];
      token.logprob = logprobs[i][j];
      scores.push_back(std::move(token));
    }
  }
  return scores;
}

}  // namespace txl
