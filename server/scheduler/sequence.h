#pragma once

// One running turn: which rows it still has to run and what its session
// becomes. No device, no sink: the loop moves it along.
//
// A session of p tokens has rows at positions 0..p-2, its last token is still
// to be fed. A turn feeds that token and its input: all of it to GENERATE, all
// but the very last id otherwise. GENERATE samples at the last of these rows
// and then feeds what it sampled, one row per token.
//
// Tokens that GENERATE adopts (turn.h) are fed behind the input; the row before
// each of them scores it. Where the turn's stop rules hold at the last of its
// known tokens, nothing is sampled, and that one is left to be fed.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/engine/step_runner.h"
#include "server/scheduler/admission_queue.h"
#include "server/scheduler/prefix_cache.h"
#include "server/scheduler/scoring_lanes.h"
#include "server/scheduler/step_ledger.h"
#include "server/scheduler/turn.h"
#include "server/scheduler/turn_text.h"

namespace txl {

enum class SequencePhase {
  kPrompting,   // input rows are left to plan; nothing is committed
  kDecoding,    // GENERATE, input planned: one row in each step
  kCollecting,  // every row is planned, results are still to come
};

// Rows that `turn` runs for its input (see above), without a rebuild.
int64_t InputRows(const Turn& turn);
// The most rows that it writes before it commits, with `depth` steps in flight.
// For a turn that saves the state, so many that the state must be saved.
int64_t RowsBeforeCommit(const Turn& turn, int32_t depth);

// Leading rows of its input that a turn which begins its session need not run
// if they are in its slot already; 0 for every other turn.
int64_t SkippableRows(const Turn& turn);

// What is booked of a turn that ends `now`: all but its status and reason, and
// no token generated yet.
TurnEnd EndOfTurn(const Turn& turn, absl::Duration submitted,
                  absl::Duration now);

class Sequence {
 public:
  // `rebuild_ids` > 0: the session's state is lost, so this many of its last
  // tokens, or all, are fed first. `beats`: what its rows' ticks count.
  // REQUIRES: a valid turn (turn.h).
  Sequence(QueuedTurn queued, int64_t rebuild_ids, absl::Duration now,
           const std::optional<BeatPositions>& beats = std::nullopt);

  // The turn comes back to a slot that it had given up between two tokens, and
  // goes on there; `rebuild_ids` as above. REQUIRES: committed, no token in
  // flight.
  void Return(int64_t rebuild_ids);

  // kAlternatives, before its first row: in `slot` of a device with these
  // limits. The sequence is not moved any more.
  void OpenLanes(const RunnerInfo& info, int32_t slot);
  // Null until then, and for turns of other kinds.
  ScoringLanes* lanes() { return lanes_.get(); }
  // Whether the next rows are theirs: those before them are planned.
  bool in_lanes() const { return lanes_ != nullptr && planned_ >= input_rows_; }

  // SkippableRows of the turn; 0 from its first planned row on.
  int64_t SkippableRows() const;
  // They are there: the first `rows` of them. `scores`: of as many ids behind
  // the first one, where the turn reports them. REQUIRES: at most
  // SkippableRows().
  void Skip(int64_t rows, const PrefixScores* scores);
  // Whether the log-probability of each id of the input is reported.
  bool scores_input() const;
  // What is known of them so far.
  std::shared_ptr<const PrefixScores> InputScores() const;
  // The ids whose rows it plans before any other: of input and what is adopted.
  absl::Span<const int32_t> fed() const { return feed_; }
  // Rows that it runs before it samples, of a turn that begins its session.
  int64_t prompt_end() const { return first_position_ + input_rows_; }
  // Rows before these positions are planned, or have come back whole.
  int64_t planned_end() const { return first_position_ + planned_; }
  int64_t collected_end() const { return first_position_ + collected_; }

  const Turn& turn() const { return turn_; }
  SessionLease& lease() { return turn_.lease; }
  bool committed() const { return committed_; }
  // Has committed since it got its slot.
  bool advanced() const { return committed_ && generated_ >= advanced_from_; }
  // Tokens that this run sampled.
  int64_t generated() const { return generated_; }
  // Tokens of MostTokens that it has neither fed nor generated.
  int64_t tokens_unused() const;
  // Tokens of the input that were not fed.
  int64_t cached_tokens() const { return skipped_; }
  // Adopted tokens stand behind the turn's end: it must fail.
  bool contradicted() const { return contradicted_; }
  // What the sink hears first, and the resumed tokens that it hears then.
  TurnStarted Started() const;
  absl::Span<const TokenEvent> Replayed() const;
  absl::Duration submitted() const { return submitted_; }
  // What EndOfTurn says, with the generated tokens.
  TurnEnd EndAt(absl::Duration now) const;

  SequencePhase phase() const;
  // Input rows left to plan.
  int64_t prompt_rows_left() const;
  // Planned rows whose token has not come back.
  int64_t tokens_in_flight() const;
  // Tokens that rows behind those planned may sample.
  int64_t tokens_plannable() const;
  // Every row's result is in: a turn that samples nothing is done.
  bool all_collected() const;
  // Why it ends then. REQUIRES: all_collected.
  FinishReason reason() const {
    return known_end_.value_or(FinishReason::kMaxTokens);
  }
  // Rows that were written past the session's committed ones.
  int64_t rows_past_commit() const;

  // Appends the next `count` rows, in `slot`. REQUIRES: what the phase allows.
  void PlanRows(int64_t count, int32_t slot, std::vector<StepRow>& rows);
  // Appends rows that feed guesses of what the row planned last samples, and so
  // on. REQUIRES: that row samples, no token but its own is in flight; at most
  // tokens_plannable guesses.
  void PlanGuesses(absl::Span<const int32_t> ids, int32_t slot,
                   std::vector<StepRow>& rows);
  // Appends up to `count` rows of the scoring lanes. The slots in `clear` must
  // be cleared before they run. REQUIRES: in_lanes.
  void PlanLaneRows(int64_t count, std::vector<StepRow>& rows,
                    std::vector<int32_t>& clear);
  // Sampling state for GENERATE, to be set before its first row.
  SlotSampling Sampling() const;

  // A planned row came back whole. The row counts as pending until TakePending.
  void CollectRow(RowKind kind);
  // A planned row with a guess came back rejected: it never was.
  void RejectRow() { --planned_; }
  RowCounts TakePending();
  // CollectRow for kScore and kDecode: with its result.
  void CollectScore(RowResult result);

  // Commits the input and what is adopted, of a turn that samples nothing;
  // false: there was none. REQUIRES: all_collected.
  bool CommitInput(absl::Duration now);
  // Commits the next token, the first one with what CommitInput would, and
  // returns the token's event with a reason to stop.
  struct Generated {
    TokenEvent event;
    std::optional<FinishReason> reason;
    TokenTime time;
  };
  Generated CommitToken(RowResult result, absl::Duration now);

  // Scores of the input, one per id, or of the alternatives. REQUIRES:
  // all_collected; once.
  std::vector<ScoredToken> TakeScores();

  // The end, as of `now`.
  TurnFinished Finish(FinishReason reason, absl::Duration now);
  // Commits the detokenizer and what becomes of the session's last_turn, with
  // the record of a named turn; nothing for a turn that changed nothing.
  // `finished`: Finish's; null for a turn that broke off.
  void RecordEnd(const std::string& outcome, const TurnFinished* finished);

 private:
  // Makes `feed_` begin with the session's last tokens, so many or all, at
  // least one.
  void FeedSession(int64_t ids);
  // The turn's known tokens go through its text and its stop rules.
  void AddResumed();
  void AddAdopted();
  void NoteEnd(TurnText::Piece piece);
  // The value of input_rows_ for what must be fed at the beginning.
  int64_t RowsToFeed() const;
  bool Samples() const {
    return turn_.kind == TurnKind::kGenerate && !known_end_.has_value();
  }
  // Input and adopted ids that the session does not hold yet.
  std::vector<int32_t> Uncommitted() const;
  void BecomeCommitted();
  std::vector<ScoredToken> TakeLaneScores();
  std::shared_ptr<const TurnRecord> MakeRecord(const TurnFinished* finished);
  // Of the ids of session and input before `position`. REQUIRES: counter_.
  BeatCounter CounterAt(int64_t position) const;
  // Counts the known ids of the rows before `row`. Those of all are known,
  // where two steps are in flight: a row's ticks do not depend on its own id.
  void CountTo(int64_t row);
  int32_t IdAt(int64_t row) const;
  RowKind KindOf(int64_t row) const;

  Turn turn_;
  // Where the whole turn began, also where this run resumes it.
  const int64_t start_position_;
  const int64_t prompt_tokens_;
  const int64_t resumed_;  // tokens of the run before
  const int64_t known_;    // those and the adopted ones
  std::shared_ptr<const Detokenizer> start_detokenizer_;
  const absl::Duration submitted_;
  const absl::Duration admitted_;
  std::optional<absl::Duration> input_done_;  // first token, or end of input
  absl::Duration last_token_;

  // Session tokens to feed (the last one, or those of a rebuild), the input and
  // what is adopted.
  std::vector<int32_t> feed_;
  int64_t context_ = 0;         // of feed_, how many are the session's
  int64_t first_position_ = 0;  // of feed_[0]
  int64_t input_rows_ = 0;      // with the rebuild's
  int64_t scored_rows_ = 0;     // rows of feed_ before an adopted id

  // Of models with beat positions: the ids of the session before
  // first_position_ and of the first `counted_` rows. The session's ids say it
  // all, so that nothing of it is kept with states, images or journals.
  std::optional<BeatCounter> counter_;
  int64_t counted_ = 0;

  // Rows planned in the slot that the turn has now.
  int64_t planned_ = 0;
  int64_t collected_ = 0;
  int64_t skipped_ = 0;
  int64_t rebuilt_ = 0;  // rows of lost states, in all slots
  int64_t generated_ = 0;
  int64_t generated_before_ = 0;  // of them, in slots that it gave up
  int64_t advanced_from_ = 0;     // see advanced
  bool committed_ = false;
  RowCounts pending_;
  TurnText text_;
  std::vector<std::string> input_pieces_;
  std::vector<ScoredToken> scores_;
  std::unique_ptr<ScoringLanes> lanes_;
  std::string matched_stop_text_;
  std::optional<FinishReason> known_end_;  // of the known tokens
  bool contradicted_ = false;
  std::vector<TokenEvent> adopted_;  // for the record
  size_t adopted_scored_ = 0;        // of them, with log-probabilities
  // What a named turn has said, for its record.
  std::vector<TokenEvent> said_;
  std::vector<ScoredToken> said_scores_;
};

}  // namespace txl
