#include "server/scheduler/admission_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/scheduler/turn.h"

namespace txl {

AdmissionQueue::AdmissionQueue(AdmissionQueueOptions options, Metrics* metrics)
    : options_(options), metrics_(metrics) {}

bool AdmissionQueue::Fits(int64_t tokens) const {
  return calls_ < options_.max_calls &&
         (calls_ == 0 || tokens_ + tokens <= options_.max_tokens);
}

absl::Status AdmissionQueue::Push(Turn& turn, absl::Duration now) {
  const int64_t tokens = TokensIn(turn);
  const std::string name = TenantName(turn);
  const double weight = TenantWeight(turn);
  absl::MutexLock lock(&mutex_);
  if (closed_ && turn.kind != TurnKind::kSave) return ServerDraining();
  // Callers look at the clock before they come in.
  latest_ = std::max(latest_, now);
  const absl::Duration due =
      DueOf(turn.priority, latest_, options_.priority_age);
  const auto found = tenants_.find(name);
  if (found != tenants_.end() &&
      TooLate(turn, found->second.waiting, due, now)) {
    return DeadlineUnreachable();
  }
  const size_t waiting =
      found == tenants_.end() ? 0 : found->second.waiting.size();
  while (!Fits(tokens)) {
    if (!PushOut(static_cast<double>(waiting + 1) / weight)) {
      return QueueFull(options_.retry_after);
    }
  }
  Tenant& tenant = tenants_[name];
  if (waiting > 0) loads_.erase({tenant.load(), name});
  tenant.weight = weight;
  const int32_t counts = turn.tenant_counts;
  tenant.waiting.emplace(std::pair(due, arrivals_++),
                         QueuedTurn{std::move(turn), now});
  loads_.emplace(tenant.load(), name);
  order_.Join(name, weight);
  tokens_ += tokens;
  ++calls_;
  metrics_->Update([tokens, counts](Snapshot& s) {
    if (!s.tenants.empty()) {
      ++s.tenants[counts].turns_started;
      ++s.tenants[counts].turns_active;
    }
    ++s.turns_started;
    ++s.turns_active;
    ++s.queued_calls;
    s.queued_tokens += tokens;
  });
  return absl::OkStatus();
}

bool AdmissionQueue::TooLate(const Turn& turn, const Waiting& waiting,
                             absl::Duration due, absl::Duration now) const {
  const std::optional<double> rate = rate_.tokens_per_second();
  if (!turn.deadline.has_value() || !rate.has_value()) return false;
  auto tokens = static_cast<double>(TokensIn(turn));
  for (const auto& [place, queued] : waiting) {
    if (place.first > due) break;
    const int64_t in = TokensIn(queued.turn);
    tokens +=
        static_cast<double>(in) + rate_.Expected(MostTokens(queued.turn) - in);
  }
  return IsUnreachable(tokens, *rate,
                       std::max(*turn.deadline - now, absl::ZeroDuration()));
}

bool AdmissionQueue::PushOut(double load) {
  if (loads_.empty() || loads_.rbegin()->first <= load) return false;
  const auto most = tenants_.find(loads_.rbegin()->second);
  const auto last = std::prev(most->second.waiting.end());
  pushed_out_.push_back(Take(most, last));
  return true;
}

QueuedTurn AdmissionQueue::Take(Tenants::iterator tenant,
                                Waiting::iterator turn) {
  auto& [name, line] = *tenant;
  QueuedTurn taken = std::move(turn->second);
  loads_.erase({line.load(), name});
  line.waiting.erase(turn);
  --calls_;
  tokens_ -= TokensIn(taken.turn);
  if (line.waiting.empty()) {
    order_.Leave(name);
    tenants_.erase(tenant);
  } else {
    loads_.emplace(line.load(), name);
  }
  return taken;
}

void AdmissionQueue::Leave(const QueuedTurn& taken, absl::Duration now) {
  const int64_t tokens = TokensIn(taken.turn);
  // It may have come after the caller looked at the clock.
  const double seconds = absl::ToDoubleSeconds(
      std::max(now - taken.submitted, absl::ZeroDuration()));
  metrics_->Update([tokens, seconds](Snapshot& s) {
    --s.queued_calls;
    s.queued_tokens -= tokens;
    s.distributions.queue_seconds.Observe(seconds);
  });
}

std::optional<QueuedTurn> AdmissionQueue::TakeFirst(
    absl::Duration now, absl::FunctionRef<bool(const QueuedTurn&)> wanted) {
  absl::MutexLock lock(&mutex_);
  for (const auto& [start, name] : order_.line()) {
    const auto tenant = tenants_.find(name);
    Waiting& waiting = tenant->second.waiting;
    for (auto it = waiting.begin(); it != waiting.end(); ++it) {
      if (!wanted(it->second)) continue;
      QueuedTurn taken = Take(tenant, it);
      Leave(taken, now);
      return taken;
    }
  }
  return std::nullopt;
}

std::optional<QueuedTurn> AdmissionQueue::TakePushedOut(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  if (pushed_out_.empty()) return std::nullopt;
  QueuedTurn taken = std::move(pushed_out_.back());
  pushed_out_.pop_back();
  Leave(taken, now);
  return taken;
}

void AdmissionQueue::Charge(const Turn& turn) {
  absl::MutexLock lock(&mutex_);
  order_.Charge(TenantName(turn), static_cast<double>(MostTokens(turn)));
}

void AdmissionQueue::Refund(const Turn& turn, int64_t tokens) {
  absl::MutexLock lock(&mutex_);
  order_.Refund(TenantName(turn), static_cast<double>(tokens));
  if (turn.kind == TurnKind::kGenerate) {
    rate_.NoteTurn(turn.stop.max_tokens - tokens);
  }
}

void AdmissionQueue::NoteStep(int64_t tokens, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  rate_.NoteStep(tokens, calls_ > 0, now);
}

bool AdmissionQueue::empty() const {
  absl::MutexLock lock(&mutex_);
  return calls_ == 0 && pushed_out_.empty();
}

absl::Duration AdmissionQueue::EarliestDeadline() const {
  absl::MutexLock lock(&mutex_);
  absl::Duration earliest = absl::InfiniteDuration();
  for (const auto& [name, tenant] : tenants_) {
    for (const auto& [place, queued] : tenant.waiting) {
      earliest = std::min(earliest, queued.turn.deadline.value_or(earliest));
    }
  }
  return earliest;
}

absl::Duration AdmissionQueue::OldestSubmitted() const {
  absl::MutexLock lock(&mutex_);
  absl::Duration oldest = absl::InfiniteDuration();
  for (const auto& [name, tenant] : tenants_) {
    for (const auto& [place, queued] : tenant.waiting) {
      oldest = std::min(oldest, queued.submitted);
    }
  }
  return oldest;
}

absl::Duration AdmissionQueue::EarliestRefill(absl::Duration now) const {
  absl::MutexLock lock(&mutex_);
  absl::Duration earliest = absl::InfiniteDuration();
  for (const auto& [name, tenant] : tenants_) {
    const Turn& turn = tenant.waiting.begin()->second.turn;
    if (turn.account == nullptr) continue;
    earliest =
        std::min(earliest, turn.account->PausedUntil(now).value_or(earliest));
  }
  return earliest;
}

void AdmissionQueue::ForEach(
    absl::FunctionRef<void(const QueuedTurn&)> look) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, tenant] : tenants_) {
    for (const auto& [place, queued] : tenant.waiting) look(queued);
  }
}

void AdmissionQueue::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
}

void FairOrder::Join(const std::string& flow, double weight) {
  ForgetPast();
  Flow& joined = flows_[flow];
  joined.weight = weight;
  if (joined.in_line) return;
  gone_.erase({joined.start, flow});
  joined.in_line = true;
  joined.start = std::max(joined.start, virtual_time_);
  line_.emplace(joined.start, flow);
}

void FairOrder::Leave(const std::string& flow) {
  const auto found = flows_.find(flow);
  if (found == flows_.end() || !found->second.in_line) return;
  line_.erase({found->second.start, flow});
  gone_.emplace(found->second.start, flow);
  found->second.in_line = false;
}

void FairOrder::Clear() {
  flows_.clear();
  line_.clear();
  gone_.clear();
  virtual_time_ = 0;
}

void FairOrder::Charge(const std::string& flow, double cost) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return;
  Flow& charged = found->second;
  virtual_time_ = std::max(virtual_time_, charged.start);
  Restart(flow, charged, charged.start + cost / charged.weight);
}

void FairOrder::Refund(const std::string& flow, double cost) {
  const auto found = flows_.find(flow);
  if (found == flows_.end()) return;
  Flow& refunded = found->second;
  Restart(flow, refunded, refunded.start - cost / refunded.weight);
}

void FairOrder::Restart(const std::string& name, Flow& flow, double start) {
  Line& line = flow.in_line ? line_ : gone_;
  line.erase({flow.start, name});
  flow.start = start;
  line.emplace(start, name);
}

void FairOrder::ForgetPast() {
  while (!gone_.empty() && gone_.begin()->first <= virtual_time_) {
    flows_.erase(gone_.begin()->second);
    gone_.erase(gone_.begin());
  }
}

}  // namespace txl
