// SchedulerLoop: tokens that are guessed ahead of their streams.

#include <algorithm>
#include <memory>

#include "server/scheduler/guess_policy.h"
#include "server/scheduler/scheduler_loop.h"

namespace txl {
namespace {

// A stream that does not guess looks at what it would have guessed at one of
// so many tokens.
constexpr int64_t kAsideInterval = 8;

}  // namespace

void SchedulerLoop::ChooseGuessing(
    const std::vector<RunningMap::iterator>& turns,
    absl::Span<const int64_t> rows,
    absl::Span<const BatchCandidate> candidates) {
  if (!may_guess_) return;
  guessing_ = false;
  std::vector<Running*> streams;
  for (size_t i = 0; i < turns.size(); ++i) {
    if (rows[i] > 0 && candidates[i].decode) {
      streams.push_back(&turns[i]->second);
    }
  }
  if (streams.empty()) return;
  guess_floor_ = GuessFloor(step_cost_, std::ssize(streams));
  if (guess_floor_ >= 1) return;
  double gain = 0;
  for (Running* running : streams) gain += GuesserOf(*running).gain();
  guessing_ =
      WorthGuessing(guess_floor_, gain / static_cast<double>(streams.size()));
}

int64_t SchedulerLoop::AddGuesses(Running& running, int64_t room,
                                  std::vector<StepRow>& rows) {
  Sequence& sequence = running.sequence;
  const Turn& turn = sequence.turn();
  const RunnerInfo& info = runner_->info();
  // Its own row alone is in flight, so that it feeds the session's last id.
  if (!sequence.committed() || sequence.tokens_in_flight() != 1) return 0;
  // What is guessed is taken from a quota like what is sampled.
  if (turn.account != nullptr &&
      turn.account->TokensOut(clock_->Monotonic()) <= info.max_rows) {
    return 0;
  }
  GuessRoom most;
  most.wanted = options_.speculate_tokens;
  most.rows = room;
  most.spare_rows = info.spare_rows;
  most.tokens_left = sequence.tokens_plannable();
  most.events_left = options_.park_events - turn.sink->Unsent() - 1;
  const absl::Span<const int32_t> guesses = GuesserOf(running).Guess(
      turn.lease.token_ids(), {MostGuesses(most), guess_floor_});
  sequence.PlanGuesses(guesses, running.slot.index, rows);
  return static_cast<int64_t>(guesses.size());
}

Guesser& SchedulerLoop::GuesserOf(Running& running) {
  if (running.guesser == nullptr) {
    running.guesser =
        std::make_unique<Guesser>(options_.ngrams.get(), &guess_rates_);
  }
  return *running.guesser;
}

void SchedulerLoop::GuessAside(Running& running) {
  if (guess_floor_ >= 1 || running.guesser == nullptr) return;
  const Sequence& sequence = running.sequence;
  if (running.guesser->waits() || sequence.generated() % kAsideInterval != 0) {
    return;
  }
  running.guesser->Guess(sequence.turn().lease.token_ids(),
                         {options_.speculate_tokens, guess_floor_});
}

GuessCounts SchedulerLoop::CountGuesses(const InFlight& record,
                                        const StepResult& result) {
  GuessCounts counts;
  if (record.shape.guesses == 0) return counts;
  int64_t of_stream = 0;
  for (size_t i = 0; i < result.rows.size(); ++i) {
    if (!record.IsGuess(i)) {
      of_stream = 0;
      continue;
    }
    ++counts.guessed;
    const RowResult& row = result.rows[i];
    if (!row.status.ok() || row.rejected) continue;
    ++counts.accepted;
    counts.steps_saved = std::max(counts.steps_saved, ++of_stream);
  }
  return counts;
}

}  // namespace txl
