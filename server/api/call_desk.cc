#include "server/api/call_desk.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/error.h"

namespace txl {
namespace {

// Calls for the server's state, beside all others.
constexpr int64_t kAlwaysCalls = 64;
// A call is not ended in favour of another one before this time: a message
// that is on its way takes less.
constexpr absl::Duration kLeastWait = absl::Seconds(1);
constexpr int kAll = std::numeric_limits<int>::max();

absl::Duration SweepInterval(const CallLimits& limits) {
  return std::min({limits.request_timeout / 4, limits.answer_timeout / 4,
                   absl::Milliseconds(250)});
}

}  // namespace

CallDesk::CallDesk(const ServiceContext* context)
    : context_(*context),
      most_readers_(
          std::max<int64_t>(context->call_limits.unread_bytes /
                                context->turns.model.limits.message_bytes,
                            1)),
      to_read_(static_cast<size_t>(context->call_limits.calls + kAlwaysCalls)),
      unread_(context->call_limits.unread_answer_bytes),
      peers_(context->call_limits.streams_per_connection),
      sweeper_(SweepInterval(context->call_limits), [this] { Sweep(); }) {
  lines_.audit = context->audit;
  lines_.spans = context->spans;
}

absl::Status CallDesk::Overloaded(absl::string_view message) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  return OverloadedError(message, context_.turns.model.scheduler.retry_after);
}

absl::Status CallDesk::CheckMemory() {
  if (!context_.memory.Shedding()) {
    return absl::OkStatus();
  }
  return Overloaded("the server is short of memory");
}

void CallDesk::Opened(const std::string& peer) {
  if (peers_.Opened(peer) && cut_off_) cut_off_(peer);
}

absl::Status CallDesk::Enter(Admission admission) {
  const bool always = admission == Admission::kAlways;
  if (!always) TXL_RETURN_IF_ERROR(context_.turns.lifecycle->CheckServing());
  if (admission == Admission::kNewWork) TXL_RETURN_IF_ERROR(CheckMemory());
  std::atomic<int64_t>& calls = always ? always_ : open_;
  const int64_t limit = always ? kAlwaysCalls : context_.call_limits.calls;
  if (calls.fetch_add(1, std::memory_order_relaxed) < limit) {
    return absl::OkStatus();
  }
  calls.fetch_sub(1, std::memory_order_relaxed);
  return Overloaded(absl::StrCat("more than ", limit, " calls at a time"));
}

void CallDesk::Leave(Admission admission) {
  (admission == Admission::kAlways ? always_ : open_)
      .fetch_sub(1, std::memory_order_relaxed);
}

absl::StatusOr<ByteHold> CallDesk::HoldCall() { return HoldRequest(0); }

void CallDesk::AskToRead(const std::string& peer,
                         std::weak_ptr<WaitingCall> call) {
  std::optional<std::weak_ptr<WaitingCall>> dropped;
  bool now = false;
  {
    absl::MutexLock lock(&mutex_);
    now = readers_ < most_readers_;
    if (now) {
      ++readers_;
    } else {
      dropped = to_read_.Push(peer, call);
    }
  }
  if (now) {
    if (const auto self = call.lock()) self->StartReading();
    return;
  }
  if (dropped.has_value()) {
    if (const auto other = dropped->lock()) other->GiveUpReading();
  }
  EndSlowestReader();
}

void CallDesk::DoneReading() {
  std::shared_ptr<WaitingCall> next;
  {
    absl::MutexLock lock(&mutex_);
    while (next == nullptr && !to_read_.empty()) next = to_read_.Pop().lock();
    if (next == nullptr) --readers_;
  }
  if (next == nullptr) return;
  context_.turns.callbacks->Run([next] { next->StartReading(); });
}

void CallDesk::CountReset(const std::string& peer) {
  if (peers_.Reset(peer, Now()) && cut_off_) cut_off_(peer);
}

bool CallDesk::EndSlowestReader() {
  const auto oldest = reading_.Take(Now() - kLeastWait, 1);
  if (oldest.empty()) return false;
  context_.turns.callbacks->Run(
      [call = oldest.front()] { call->GiveUpReading(); });
  return true;
}

absl::StatusOr<ByteHold> CallDesk::HoldRequest(int64_t bytes) {
  return HoldPart(kCallBytes + kMessageExpansion * bytes);
}

absl::StatusOr<ByteHold> CallDesk::HoldPart(int64_t bytes) {
  if (bytes > context_.memory.requests->limit()) {
    return OverLimitError("",
                          "the request takes more memory than the server "
                          "has for all requests");
  }
  auto hold = context_.memory.requests->TryHold(bytes);
  if (hold.has_value()) return *std::move(hold);
  return Overloaded("the server works on as many requests as it has room for");
}

absl::StatusOr<ByteHold> CallDesk::HoldAnswer(int64_t bytes) {
  if (bytes > context_.memory.streams->limit()) {
    return OverLimitError("",
                          "the answer would take more memory than the "
                          "server has for all answers: ask for less");
  }
  return HoldOrCutOff(*context_.memory.streams, bytes);
}

absl::StatusOr<ByteHold> CallDesk::HoldUnread(int64_t bytes) {
  return HoldOrCutOff(unread_, bytes);
}

absl::StatusOr<ByteHold> CallDesk::HoldOrCutOff(ByteBudget& budget,
                                                int64_t bytes) {
  while (true) {
    if (auto hold = budget.TryHold(bytes)) return *std::move(hold);
    const auto oldest = answering_.Take(Now() - kLeastWait, 1);
    if (oldest.empty()) {
      return Overloaded("the server has no room for another answer");
    }
    oldest.front()->CutOff();
  }
}

void CallDesk::Sweep() {
  const CallLimits& limits = context_.call_limits;
  size_t waiting;
  {
    absl::MutexLock lock(&mutex_);
    waiting = to_read_.size();
  }
  while (waiting > 0 && EndSlowestReader()) --waiting;
  for (const auto& call : reading_.Take(Now() - limits.request_timeout, kAll)) {
    context_.turns.callbacks->Run([call] { call->TimeOutReading(); });
  }
  for (const auto& call :
       answering_.Take(Now() - limits.answer_timeout, kAll)) {
    call->CutOff();
  }
}

ServerStatus CallDesk::Status() const {
  ServerStatus status = ReadStatus(context_);
  status.calls = counts();
  absl::MutexLock lock(&mutex_);
  for (const auto& counts : connections_) {
    const ConnectionCounts part = counts();
    status.connections.open += part.open;
    status.connections.limit += part.limit;
    status.connections.refused += part.refused;
  }
  return status;
}

CallCounts CallDesk::counts() const {
  return {.open = open_.load(std::memory_order_relaxed) +
                  always_.load(std::memory_order_relaxed),
          .reading = reading_.size(),
          .answering = answering_.size(),
          .refused = refused_.load(std::memory_order_relaxed)};
}

}  // namespace txl
