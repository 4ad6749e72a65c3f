#pragma once

// One running turn: which rows it still has to run and what its session
// becomes. No device, no sink: the loop moves it along.
//
// A session of p tokens has rows at positions 0..p-2, its last token is still
// to be fed. A turn feeds that token and its input: all of it to GENERATE, all
// but the very last id otherwise. GENERATE samples at the last of these rows
// and then feeds what it sampled, one row per token.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/engine/step_runner.h"
#include "server/scheduler/admission_queue.h"
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
// Most rows that it writes before it commits, with `depth` steps in flight.
int64_t RowsBeforeCommit(const Turn& turn, int32_t depth);

// What is booked of a turn that ends `now`: all but its status and reason, and
// no token generated yet.
TurnEnd EndOfTurn(const Turn& turn, absl::Duration submitted,
                  absl::Duration now);

class Sequence {
 public:
  // With `rebuild_ids` > 0 the session's own last tokens, so many or all, are
  // fed first: for a session whose state is lost. REQUIRES: a valid turn
  // (turn.h).
  Sequence(QueuedTurn queued, int64_t rebuild_ids, absl::Duration now);

  // The turn comes back to a slot that it had given up between two tokens, and
  // goes on there; `rebuild_ids` as above. REQUIRES: committed, no token in
  // flight.
  void Return(int64_t rebuild_ids);

  const Turn& turn() const { return turn_; }
  SessionLease& lease() { return turn_.lease; }
  bool committed() const { return committed_; }
  // Has committed since it got its slot.
  bool advanced() const { return committed_ && generated_ >= advanced_from_; }
  // Tokens of this run, without those of a resumed turn.
  int64_t generated() const { return generated_; }
  // What the sink hears first.
  TurnStarted Started() const;
  absl::Duration submitted() const { return submitted_; }
  // What EndOfTurn says, with the generated tokens.
  TurnEnd EndAt(absl::Duration now) const;

  SequencePhase phase() const;
  // Input rows left to plan.
  int64_t prompt_rows_left() const;
  // Planned rows whose token has not come back.
  int64_t tokens_in_flight() const;
  // Every row's result is in: APPEND and SCORE are done.
  bool all_collected() const;
  // Rows that were written past the session's committed ones.
  int64_t rows_past_commit() const;

  // Appends the next `count` rows, in `slot`. REQUIRES: what the phase allows.
  void PlanRows(int64_t count, int32_t slot, std::vector<StepRow>& rows);
  // Sampling state for GENERATE, to be set before its first row.
  SlotSampling Sampling() const;

  // A planned row came back whole. The row counts as pending until TakePending.
  void CollectRow(RowKind kind);
  RowCounts TakePending();
  // CollectRow for kScore and kDecode: with its result.
  void CollectScore(RowResult result);

  // Commits the input (APPEND), or the next token (GENERATE; the first one with
  // the input), and returns the token's event with a reason to stop.
  void CommitInput(absl::Duration now);
  struct Generated {
    TokenEvent event;
    std::optional<FinishReason> reason;
    TokenTime time;
  };
  Generated CommitToken(RowResult result, absl::Duration now);

  // Scores of the input, one per id. REQUIRES: all_collected; once.
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
  std::shared_ptr<const TurnRecord> MakeRecord(const TurnFinished* finished);
  int32_t IdAt(int64_t row) const;
  RowKind KindOf(int64_t row) const;

  Turn turn_;
  // Where the whole turn began, also where this run resumes it.
  const int64_t start_position_;
  const int64_t prompt_tokens_;
  const int64_t resumed_;  // tokens of the run before
  std::shared_ptr<const Detokenizer> start_detokenizer_;
  const absl::Duration submitted_;
  const absl::Duration admitted_;
  std::optional<absl::Duration> input_done_;  // first token, or end of input
  absl::Duration last_token_;

  // Session tokens to feed (the last one, or those of a rebuild) and the input.
  std::vector<int32_t> feed_;
  int64_t context_ = 0;         // of feed_, how many are the session's
  int64_t first_position_ = 0;  // of feed_[0]
  int64_t input_rows_ = 0;      // with the rebuild's

  // Rows planned in the slot that the turn has now.
  int64_t planned_ = 0;
  int64_t collected_ = 0;
  int64_t generated_ = 0;
  int64_t generated_before_ = 0;  // of them, in slots that it gave up
  int64_t advanced_from_ = 0;     // see advanced
  bool committed_ = false;
  RowCounts pending_;
  TurnText text_;
  std::vector<std::string> input_pieces_;
  std::vector<ScoredToken> scores_;
  std::string matched_stop_text_;
  // What a named turn has said, for its record.
  std::vector<TokenEvent> said_;
  std::vector<ScoredToken> said_scores_;
};

}  // namespace txl
