// SchedulerLoop: tokens that are guessed ahead of their streams.

#include <algorithm>
#include <limits>
#include <memory>

#include "server/scheduler/guess_policy.h"
#include "server/scheduler/scheduler_loop.h"

namespace txl {
namespace {

// A stream that does not guess looks at what it would have guessed at one of
// so many tokens.
constexpr int64_t kAsideInterval = 8;

}  // namespace

bool SchedulerLoop::WeighGuesses(absl::Span<Running* const> streams) {
  const int64_t count = std::ssize(streams);
  if (count == 0) return false;
  guess_floor_ = GuessFloor(step_cost_, count);
  if (guess_floor_ >= 1) return false;
  draft_floor_ = draft_.has_value() && draft_->works()
                     ? DraftFloor(step_cost_, draft_->cost(), count)
                     : std::numeric_limits<double>::infinity();
  double gain = 0;
  for (Running* running : streams) gain += GuesserOf(*running).gain();
  return WorthGuessing(guess_floor_, gain / static_cast<double>(count));
}

std::vector<absl::Span<const int32_t>> SchedulerLoop::ChooseGuesses(
    const std::vector<RunningMap::iterator>& turns,
    absl::Span<const int64_t> rows, absl::Span<const BatchCandidate> candidates,
    int64_t room) {
  std::vector<absl::Span<const int32_t>> guesses;
  if (!may_guess_) return guesses;
  std::vector<Running*> streams;
  std::vector<size_t> turn_of;
  for (size_t i = 0; i < turns.size(); ++i) {
    if (rows[i] == 0 || !candidates[i].decode) continue;
    streams.push_back(&turns[i]->second);
    turn_of.push_back(i);
  }
  guessing_ = WeighGuesses(streams);
  if (!guessing_) return guesses;
  guesses.resize(turns.size());
  std::vector<Running*> able;
  std::vector<size_t> turn_of_able;
  for (size_t i = 0; i < streams.size(); ++i) {
    Running& running = *streams[i];
    const std::optional<int64_t> most =
        MostGuessesOf(running, room / std::ssize(streams));
    if (!most.has_value()) continue;
    running.guesser->Begin(running.sequence.turn().lease.token_ids(),
                           LimitsOf(*most));
    able.push_back(&running);
    turn_of_able.push_back(turn_of[i]);
  }
  AskDraft(able);
  for (size_t i = 0; i < able.size(); ++i) {
    guesses[turn_of_able[i]] = able[i]->guesser->given();
  }
  return guesses;
}

std::optional<int64_t> SchedulerLoop::MostGuessesOf(const Running& running,
                                                    int64_t room) {
  const Sequence& sequence = running.sequence;
  const Turn& turn = sequence.turn();
  const RunnerInfo& info = runner_->info();
  // Nothing is in flight, so that its own row feeds the session's last id.
  if (!sequence.committed() || sequence.tokens_in_flight() != 0) {
    return std::nullopt;
  }
  // What is guessed is taken from a quota like what is sampled.
  if (turn.account != nullptr &&
      turn.account->TokensOut(clock_->Monotonic()) <= info.max_rows) {
    return std::nullopt;
  }
  GuessRoom most;
  most.wanted = options_.speculate_tokens;
  most.rows = room;
  most.spare_rows = info.spare_rows;
  most.tokens_left = sequence.tokens_plannable() - 1;
  most.events_left = options_.park_events - turn.sink->Unsent() - 1;
  return MostGuesses(most);
}

Guesser& SchedulerLoop::GuesserOf(Running& running) {
  if (running.guesser == nullptr) {
    running.guesser =
        std::make_unique<Guesser>(options_.ngrams.get(), &guess_rates_);
  }
  return *running.guesser;
}

GuessLimits SchedulerLoop::LimitsOf(int64_t most) const {
  GuessLimits limits;
  limits.most = most;
  limits.floor = guess_floor_;
  limits.draft_floor = draft_floor_;
  return limits;
}

void SchedulerLoop::AskDraft(std::vector<Running*> streams) {
  while (true) {
    std::erase_if(streams, [](const Running* running) {
      return !running->guesser->WantsDraft();
    });
    if (streams.empty()) return;
    std::vector<DraftAsk> asks;
    for (const Running* running : streams) {
      DraftAsk& ask = asks.emplace_back();
      ask.slot = running->slot.index;
      ask.ids = &running->sequence.turn().lease.token_ids();
      ask.guesses = running->guesser->guesses();
      ask.sampling = running->sequence.Sampling();
      ask.sampling.recent_ids.insert(ask.sampling.recent_ids.end(),
                                     ask.guesses.begin(), ask.guesses.end());
    }
    const std::vector<std::optional<DraftGuess>> guesses = draft_->Next(asks);
    for (size_t i = 0; i < streams.size(); ++i) {
      streams[i]->guesser->Hear(guesses[i]);
    }
  }
}

void SchedulerLoop::GuessAside(Running& running) {
  if (guess_floor_ >= 1 || running.guesser == nullptr) return;
  const Sequence& sequence = running.sequence;
  if (running.guesser->waits() || sequence.generated() % kAsideInterval != 0) {
    return;
  }
  running.guesser->Begin(sequence.turn().lease.token_ids(),
                         LimitsOf(options_.speculate_tokens));
  AskDraft({&running});
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
