#include "tests/bench/front/stream_run.h"

#include <memory>
#include <random>
#include <utility>

#include "absl/synchronization/notification.h"
#include "model/base/status_macros.h"
#include "server/base/clock.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/scheduler.h"
#include "server/session/session_store.h"
#include "tests/bench/process_facts.h"

namespace txl {
namespace {

constexpr int64_t kWarmUpSteps = 20;
// Nobody stops before the measurement is over.
constexpr int32_t kEndless = 1 << 30;

// Counts the tokens of all sinks and reads the clocks. Sinks are called by the
// scheduler's thread alone; what Times returns is left alone once it is over.
class Probe {
 public:
  Probe(const StreamLoad& load, std::function<void()> at_border)
      : load_(load), at_border_(std::move(at_border)) {}

  // The `index`-th token of a stream.
  void Token(int32_t stream, int32_t index) {
    if (stream == 0) FirstStream();
    if (index == 0 && ++generating_ == load_.sessions) {
      first_ = tokens_ + 1 + kWarmUpSteps * load_.sessions;
    }
    ++tokens_;
    if (generating_ < load_.sessions) return;
    if (tokens_ == first_) Begin();
    if (tokens_ == first_ + load_.steps * load_.sessions) End();
  }
  void PromptBegins() { into_ = &times_.beside_seconds; }
  void PromptEnds() {
    into_ = nullptr;
    beside_over_.Notify();
  }
  void Failed(const absl::Status& status) {
    if (over_.HasBeenNotified() &&
        (load_.beside_tokens == 0 || beside_over_.HasBeenNotified())) {
      return;
    }
    failed_ = status;
    if (!over_.HasBeenNotified()) over_.Notify();
    if (!beside_over_.HasBeenNotified()) beside_over_.Notify();
  }

  absl::Status WaitForStreams() {
    over_.WaitForNotification();
    return failed_;
  }
  absl::Status WaitForPrompt() {
    beside_over_.WaitForNotification();
    return failed_;
  }
  StreamTimes Times() const { return times_; }

 private:
  void FirstStream() {
    const absl::Duration now = Clock::Real()->Monotonic();
    const absl::Duration last = std::exchange(last_, now);
    if (into_ != nullptr) into_->push_back(absl::ToDoubleSeconds(now - last));
  }
  void Begin() {
    if (at_border_) at_border_();
    times_.processor_seconds = -ProcessorSeconds();
    begin_ = Clock::Real()->Monotonic();
    into_ = &times_.step_seconds;
  }
  void End() {
    times_.time = Clock::Real()->Monotonic() - begin_;
    times_.processor_seconds += ProcessorSeconds();
    times_.tokens = load_.steps * load_.sessions;
    if (at_border_) at_border_();
    into_ = nullptr;
    over_.Notify();
  }

  const StreamLoad load_;
  const std::function<void()> at_border_;
  int64_t tokens_ = 0;
  int32_t generating_ = 0;  // sessions with a token
  int64_t first_ = 0;       // tokens before the measurement
  absl::Duration begin_;
  absl::Duration last_;                  // token of the first stream
  std::vector<double>* into_ = nullptr;  // its intervals; null: not counted
  StreamTimes times_;
  absl::Status failed_;  // written before the notifications
  absl::Notification over_;
  absl::Notification beside_over_;
};

class StreamSink final : public TokenSink {
 public:
  StreamSink(Probe* probe, int32_t stream) : probe_(probe), stream_(stream) {}
  void Started(const TurnStarted&) override {}
  void Token(TokenEvent event) override { probe_->Token(stream_, event.index); }
  void Scored(std::vector<ScoredToken>) override {}
  void Finished(const TurnFinished&) override {}
  void Failed(const absl::Status& status) override { probe_->Failed(status); }
  int Unsent() const override { return 0; }

 private:
  Probe* const probe_;
  const int32_t stream_;
};

class PromptSink final : public TokenSink {
 public:
  explicit PromptSink(Probe* probe) : probe_(probe) {}
  void Started(const TurnStarted&) override { probe_->PromptBegins(); }
  void Token(TokenEvent) override {}
  void Scored(std::vector<ScoredToken>) override {}
  void Finished(const TurnFinished&) override { probe_->PromptEnds(); }
  void Failed(const absl::Status& status) override { probe_->Failed(status); }
  int Unsent() const override { return 0; }

 private:
  Probe* const probe_;
};

// Turns on a scheduler, until it ends.
class Streams {
 public:
  Streams(const StreamLoad& load, StepRunner* runner, Probe* probe)
      : load_(load),
        probe_(probe),
        store_(Storing(load), Clock::Real()),
        scheduler_(Scheduling(load), runner, &store_, &metrics_,
                   Clock::Real()) {}

  absl::Status Start() {
    for (int32_t i = 0; i < load_.sessions; ++i) {
      TXL_RETURN_IF_ERROR(Submit(TurnKind::kGenerate, load_.prompt_tokens,
                                 std::make_shared<StreamSink>(probe_, i)));
    }
    return absl::OkStatus();
  }
  absl::Status StartPrompt() {
    return Submit(TurnKind::kAppend, load_.beside_tokens,
                  std::make_shared<PromptSink>(probe_));
  }

 private:
  static SessionStoreOptions Storing(const StreamLoad& load) {
    SessionStoreOptions storing;
    storing.vocabulary = load.vocabulary;
    return storing;
  }
  static SchedulerOptions Scheduling(const StreamLoad& load) {
    SchedulerOptions scheduling;
    scheduling.max_queued_calls = load.sessions + 1;  // all come at once
    scheduling.max_queued_tokens =
        load.sessions * load.prompt_tokens + load.beside_tokens;
    scheduling.prompt_rows_per_step = load.prompt_rows_per_step;
    return scheduling;
  }

  absl::Status Submit(TurnKind kind, int64_t tokens,
                      std::shared_ptr<TokenSink> sink) {
    Turn turn;
    turn.kind = kind;
    TXL_ASSIGN_OR_RETURN(turn.lease, store_.AcquireTemporary());
    std::uniform_int_distribution<int32_t> ids(
        0, static_cast<int32_t>(load_.prompt_ids - 1));
    for (int64_t i = 0; i < tokens; ++i) turn.input.push_back(ids(random_));
    turn.sampling.temperature = load_.temperature;
    turn.stop.max_tokens = kEndless;
    turn.sink = std::move(sink);
    turn.cancel = std::make_shared<CancelToken>();
    return scheduler_.Submit(std::move(turn));
  }

  const StreamLoad load_;
  Probe* const probe_;
  std::mt19937_64 random_{1};
  SessionStore store_;
  Metrics metrics_;
  Scheduler scheduler_;
};

}  // namespace

absl::StatusOr<StreamTimes> RunStreams(const StreamLoad& load,
                                       StepRunner* runner,
                                       std::function<void()> at_border) {
  Probe probe(load, std::move(at_border));
  Streams streams(load, runner, &probe);
  TXL_RETURN_IF_ERROR(streams.Start());
  TXL_RETURN_IF_ERROR(probe.WaitForStreams());
  if (load.beside_tokens > 0) {
    TXL_RETURN_IF_ERROR(streams.StartPrompt());
    TXL_RETURN_IF_ERROR(probe.WaitForPrompt());
  }
  return probe.Times();
}

}  // namespace txl
