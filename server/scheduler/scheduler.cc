#include "server/scheduler/scheduler.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "model/base/status_macros.h"
#include "server/base/error.h"
#include "server/base/task_thread.h"
#include "server/scheduler/admission_queue.h"
#include "server/scheduler/scheduler_loop.h"
#include "server/scheduler/turn.h"

namespace txl {
namespace {

AdmissionQueueOptions QueueOptions(const SchedulerOptions& options) {
  return {.max_calls = options.max_queued_calls,
          .max_tokens = options.max_queued_tokens,
          .retry_after = options.retry_after,
          .priority_age = options.priority_age};
}

absl::Status CheckIds(absl::Span<const int32_t> ids, int64_t vocab_size) {
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size) {
      return FieldError(
          "tokens", absl::StrCat("token id ", id, " outside the vocabulary of ",
                                 vocab_size));
    }
  }
  return absl::OkStatus();
}

// No id that a model has no row for gets past here, whoever made the turn.
absl::Status CheckAllIds(const Turn& turn, int64_t vocab_size) {
  TXL_RETURN_IF_ERROR(CheckIds(turn.input, vocab_size));
  TXL_RETURN_IF_ERROR(CheckIds(turn.adopted, vocab_size));
  for (const auto& ids : turn.alternatives) {
    TXL_RETURN_IF_ERROR(CheckIds(ids, vocab_size));
  }
  for (const auto& [id, bias] : turn.sampling.logit_bias) {
    TXL_RETURN_IF_ERROR(CheckIds({id}, vocab_size));
  }
  TXL_RETURN_IF_ERROR(CheckIds(turn.sampling.allowed_token_ids, vocab_size));
  if (turn.logprob_ids != nullptr) {
    TXL_RETURN_IF_ERROR(CheckIds(*turn.logprob_ids, vocab_size));
  }
  return CheckIds(turn.stop.stop_token_ids, vocab_size);
}

absl::Status CheckTurn(const Turn& turn, int64_t vocab_size) {
  TXL_RETURN_IF_ERROR(CheckAllIds(turn, vocab_size));
  if (turn.kind != TurnKind::kGenerate) return absl::OkStatus();
  if (turn.input.empty() && turn.lease.position() == 0) {
    return FieldError("prompt", "a session without tokens needs a prompt");
  }
  if (turn.stop.max_tokens < 1) {
    return FieldError("stop.max_tokens", "must be at least 1");
  }
  return absl::OkStatus();
}

}  // namespace

struct Scheduler::Impl {
  Impl(const SchedulerOptions& options, const SchedulerParts& parts)
      : clock(parts.clock),
        store(parts.store),
        metrics(parts.metrics),
        vocab_size(parts.runner->info().vocab_size),
        shared(QueueOptions(options), parts.metrics),
        loop(options, parts, &shared) {}

  void Run() {
    while (!stop) {
      if (!loop.Iterate()) signal->Wait(loop.NextLimit());
    }
  }

  void CountRefused(const TenantAccount& account) {
    metrics->Update([counts = account.counts()](Snapshot& s) {
      if (!s.tenants.empty()) ++s.tenants[counts].refused;
    });
  }

  Clock* const clock;
  SessionStore* const store;
  Metrics* const metrics;
  const int64_t vocab_size;
  SchedulerShared shared;
  SchedulerLoop loop;
  // Shared with the store's wake-up, which may outlive this for a moment.
  std::shared_ptr<WakeSignal> signal = std::make_shared<WakeSignal>();
  std::atomic<bool> stop{false};
  std::thread thread;
};

Scheduler::Scheduler(SchedulerOptions options, StepRunner* runner,
                     SessionStore* store, Metrics* metrics, Clock* clock,
                     bool start_thread)
    : impl_(std::make_unique<Impl>(
          options, SchedulerParts{runner, store, metrics, clock})) {
  store->SetWakeup([signal = impl_->signal] { signal->Set(); });
  if (start_thread) {
    impl_->thread = std::thread([impl = impl_.get()] { impl->Run(); });
  }
}

Scheduler::~Scheduler() {
  impl_->shared.queue.Close();
  impl_->stop = true;
  Wake();
  if (impl_->thread.joinable()) impl_->thread.join();
  impl_->loop.EndWith(ServerDraining());
  impl_->loop.AnswerReports();
  impl_->store->SetWakeup(nullptr);
}

absl::Status Scheduler::Submit(Turn turn) {
  SchedulerShared& shared = impl_->shared;
  if (absl::Status status = CheckTurn(turn, impl_->vocab_size); !status.ok()) {
    turn.lease.Release();
    return status;
  }
  const absl::Duration now = impl_->clock->Monotonic();
  TenantAccount* const account = turn.account;
  const int64_t tokens_in = TokensIn(turn);
  if (account != nullptr) {
    if (absl::Status status = account->StartTurn(tokens_in, now);
        !status.ok()) {
      impl_->CountRefused(*account);
      turn.lease.Release();
      return status;
    }
    turn.longest = account->longest_turn();
    turn.tenant_counts = account->counts();
  }
  // Counted first: Idle never overlooks a turn that the loop has taken already.
  ++shared.live_turns;
  shared.heartbeat.Start(now);
  absl::Status status = shared.queue.Push(turn, now);
  if (!status.ok()) {
    --shared.live_turns;
    if (account != nullptr) account->EndTurn(tokens_in);
    turn.lease.Release();
  }
  Wake();
  return status;
}

void Scheduler::Wake() { impl_->signal->Set(); }

void Scheduler::StartDrain() { impl_->shared.queue.Close(); }

void Scheduler::EndAll() {
  impl_->shared.end_all = true;
  Wake();
}

bool Scheduler::Idle() const { return impl_->shared.live_turns == 0; }

void Scheduler::Report(TakeReport take) {
  impl_->shared.reports.Add(std::move(take));
  Wake();
}

void Scheduler::SaveStates(absl::Span<const uint64_t> keys) {
  if (keys.empty()) return;
  // Counted first, as in Submit.
  impl_->shared.live_turns += std::ssize(keys);
  impl_->shared.heartbeat.Start(impl_->clock->Monotonic());
  for (const uint64_t key : keys) impl_->shared.due_states.Add(key);
  Wake();
}

void Scheduler::ForgetPrefixes(const std::string& tenant) {
  impl_->shared.forgotten_tenants.Add(tenant);
  Wake();
}

absl::Duration Scheduler::StallTime() const {
  return impl_->shared.heartbeat.Age(impl_->clock->Monotonic());
}

bool Scheduler::RunOnce(absl::Duration wait) {
  if (impl_->loop.Iterate()) return true;
  impl_->signal->Wait(std::min(wait, impl_->loop.NextLimit()));
  return impl_->loop.Iterate();
}

}  // namespace txl
