#include "server/scheduler/durable_sink.h"

#include <algorithm>
#include <utility>

#include "server/session/session_errors.h"

namespace txl {
namespace {

struct Teller {
  TokenSink& sink;

  void operator()(TurnStarted started) const { sink.Started(started); }
  void operator()(TokenEvent event) const { sink.Token(std::move(event)); }
  void operator()(std::vector<ScoredToken> tokens) const {
    sink.Scored(std::move(tokens));
  }
  void operator()(const TurnFinished& finished) const {
    sink.Finished(finished);
  }
  void operator()(const absl::Status& status) const { sink.Failed(status); }
};

}  // namespace

DurableSink::DurableSink(DurableSinkOptions options,
                         std::shared_ptr<TokenSink> sink,
                         std::shared_ptr<CancelToken> cancel)
    : options_(std::move(options)),
      sink_(std::move(sink)),
      cancel_(std::move(cancel)) {}

void DurableSink::Started(const TurnStarted& started) {
  Say({options_.journal->last_entry(), started});
}

void DurableSink::Token(TokenEvent event) {
  uint64_t entry = options_.journal->last_entry();
  if (!options_.tokens_wait && Confirmed()) {
    absl::MutexLock lock(&mutex_);
    entry = EntryBefore(entry);
  }
  Say({entry, std::move(event)});
}

void DurableSink::Scored(std::vector<ScoredToken> tokens) {
  Say({0, std::move(tokens)});
}

void DurableSink::Finished(const TurnFinished& finished) {
  Say({options_.journal->last_entry(), finished});
}

// A turn that fails promises nothing.
void DurableSink::Failed(const absl::Status& status) { Say({0, status}); }

int DurableSink::Unsent() const {
  absl::MutexLock lock(&mutex_);
  const int unsent = sink_->Unsent() + static_cast<int>(held_.size());
  const bool parks = failed_ || Lag() >= options_.most_lag;
  return parks ? std::max(unsent, options_.park_events) : unsent;
}

int64_t DurableSink::Lag() const {
  const auto first = std::upper_bound(lagging_.begin(), lagging_.end(),
                                      options_.journal->durable_entry());
  return lagging_.end() - first;
}

uint64_t DurableSink::EntryBefore(uint64_t entry) {
  const auto lag = static_cast<int64_t>(lagging_.size());
  const uint64_t before =
      lag < options_.most_lag ? 0 : lagging_[lag - options_.most_lag];
  lagging_.push_back(entry);
  return before;
}

uint64_t DurableSink::NextWait() {
  while (!lagging_.empty() &&
         lagging_.front() <= options_.journal->durable_entry()) {
    lagging_.pop_front();
  }
  if (!held_.empty()) return held_.front().entry;
  // In time, so that the turn is not parked where the storage keeps up.
  return Lag() * 2 >= options_.most_lag ? lagging_.front() : 0;
}

void DurableSink::Say(Held held) {
  uint64_t wait = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (failed_) return;
    held_.push_back(std::move(held));
    SayDurable();
    wait = NextWait();
  }
  if (wait > 0) WaitFor(wait);
}

bool DurableSink::Confirmed() const {
  return options_.claim == nullptr ||
         options_.claim->Confirmed(options_.boot_time(), options_.most_silence);
}

bool DurableSink::Moved() {
  if (options_.claim == nullptr || !options_.claim->moved()) return false;
  failed_ = true;
  held_.clear();
  if (!ended_) sink_->Failed(MovedError(*options_.claim));
  return true;
}

void DurableSink::Tell(Said said) {
  ended_ = ended_ || std::holds_alternative<TurnFinished>(said) ||
           std::holds_alternative<absl::Status>(said);
  std::visit(Teller{*sink_}, std::move(said));
}

void DurableSink::SayDurable() {
  const uint64_t durable = options_.journal->durable_entry();
  // Read behind it: what is stored as far as the number goes may be refused.
  if (Moved()) return;
  while (!held_.empty() && held_.front().entry <= durable) {
    // The sink is told under the lock, so that the order stays.
    Tell(std::move(held_.front().said));
    held_.pop_front();
  }
}

void DurableSink::WaitFor(uint64_t entry) {
  {
    absl::MutexLock lock(&mutex_);
    if (awaited_ >= entry) return;
    awaited_ = entry;
  }
  options_.journal->WhenDurable(
      entry, [self = shared_from_this()](const absl::Status& status) {
        self->OnDurable(status);
      });
}

void DurableSink::OnDurable(const absl::Status& status) {
  uint64_t wait = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (failed_) return;
    if (status.ok()) {
      SayDurable();
      wait = NextWait();
    } else {
      failed_ = true;
      held_.clear();
      if (!ended_) sink_->Failed(status);
    }
  }
  if (!status.ok()) cancel_->Cancel(CancelToken::Why::kCancelled);
  if (wait > 0) WaitFor(wait);
  options_.wake();
}

}  // namespace txl
