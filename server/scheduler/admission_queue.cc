#include "server/scheduler/admission_queue.h"

#include <algorithm>
#include <utility>

#include "server/scheduler/turn_errors.h"

namespace txl {
namespace {

int64_t QueuedTokens(const Turn& turn) {
  return InputTokens(turn) + static_cast<int64_t>(turn.adopted.size());
}

}  // namespace

AdmissionQueue::AdmissionQueue(AdmissionQueueOptions options, Metrics* metrics)
    : options_(options), metrics_(metrics) {}

absl::Status AdmissionQueue::Push(Turn& turn, absl::Duration now) {
  const int64_t tokens = QueuedTokens(turn);
  absl::MutexLock lock(&mutex_);
  if (closed_ && turn.kind != TurnKind::kSave) return ServerDraining();
  if (static_cast<int64_t>(turns_.size()) >= options_.max_calls ||
      (!turns_.empty() && tokens_ + tokens > options_.max_tokens)) {
    return QueueFull(options_.retry_after);
  }
  tokens_ += tokens;
  turns_.push_back({std::move(turn), now});
  metrics_->Update([tokens](Snapshot& s) {
    ++s.turns_started;
    ++s.turns_active;
    ++s.queued_calls;
    s.queued_tokens += tokens;
  });
  return absl::OkStatus();
}

std::optional<QueuedTurn> AdmissionQueue::TakeFirst(
    absl::Duration now, absl::FunctionRef<bool(const QueuedTurn&)> wanted) {
  absl::MutexLock lock(&mutex_);
  for (auto it = turns_.begin(); it != turns_.end(); ++it) {
    if (!wanted(*it)) continue;
    QueuedTurn taken = std::move(*it);
    turns_.erase(it);
    const int64_t tokens = QueuedTokens(taken.turn);
    tokens_ -= tokens;
    // It may have come after the caller looked at the clock.
    const double seconds = absl::ToDoubleSeconds(
        std::max(now - taken.submitted, absl::ZeroDuration()));
    metrics_->Update([tokens, seconds](Snapshot& s) {
      --s.queued_calls;
      s.queued_tokens -= tokens;
      s.distributions.queue_seconds.Observe(seconds);
    });
    return taken;
  }
  return std::nullopt;
}

bool AdmissionQueue::empty() const {
  absl::MutexLock lock(&mutex_);
  return turns_.empty();
}

absl::Duration AdmissionQueue::EarliestDeadline() const {
  absl::MutexLock lock(&mutex_);
  absl::Duration earliest = absl::InfiniteDuration();
  for (const QueuedTurn& queued : turns_) {
    earliest = std::min(earliest, queued.turn.deadline.value_or(earliest));
  }
  return earliest;
}

absl::Duration AdmissionQueue::OldestSubmitted() const {
  absl::MutexLock lock(&mutex_);
  return turns_.empty() ? absl::InfiniteDuration() : turns_.front().submitted;
}

void AdmissionQueue::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
}

}  // namespace txl
