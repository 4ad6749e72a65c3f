#include "client/bench/run/driver.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/call_error.h"

namespace txl::bench {
namespace {

constexpr Nanos kNever = std::numeric_limits<Nanos>::max() / 2;
// How long an end from outside may go unseen.
constexpr Nanos kLook = kNanosPerSecond / 10;
// Without a server or with a full one a stream would spin.
constexpr Nanos kRetryPause = kNanosPerSecond / 100;

std::string StatusName(const absl::Status& status) {
  const std::string reason = GetCallError(status).reason;
  const std::string code = absl::StatusCodeToString(status.code());
  return reason.empty() ? code : absl::StrCat(code, " (", reason, ")");
}

void Count(std::atomic<int64_t>& counter, int64_t by = 1) {
  counter.fetch_add(by, std::memory_order_relaxed);
}

bool IsRefusal(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status);
}

}  // namespace

Driver::Driver(SharedRun* shared, Target* target, int32_t index, int32_t count)
    : shared_(shared),
      options_(shared->options),
      target_(target),
      index_(index),
      count_(count),
      arrivals_(options_.arrivals, options_.rate, options_.workload.seed),
      stop_starting_(options_.seconds > 0 ? FromSeconds(options_.seconds)
                                          : kNever),
      cancel_at_(options_.seconds > 0
                     ? FromSeconds(options_.seconds + options_.drain_seconds)
                     : kNever) {}

DriverResult Driver::Run() {
  if (options_.mode == Mode::kOpen) {
    ScheduleArrival();
  } else {
    for (int32_t i = index_; i < options_.streams; i += count_) {
      const double share = static_cast<double>(i) / options_.streams;
      Schedule(FromSeconds(options_.rate.ramp_seconds * share),
               Due::kConversation);
    }
  }
  while (true) {
    FireDue();
    if (Over(Now())) break;
    const Event event = target_->Next(shared_->start + NextStop());
    if (event.kind != Event::Kind::kNone) Handle(event);
  }
  result_.end = Now();
  return std::move(result_);
}

void Driver::Schedule(Nanos at, Due due, int32_t slot) {
  timers_.push({at, order_++, due, slot});
}

// All drivers draw the same arrivals; this one takes its own.
void Driver::ScheduleArrival() {
  Nanos at = 0;
  do {
    at = FromSeconds(arrivals_.Next());
    ++arrival_;
  } while (arrival_ % count_ != index_);
  const bool last = options_.requests > 0 && arrival_ >= options_.requests;
  if (!last && at < stop_starting_) Schedule(at, Due::kArrival);
}

bool Driver::MayStart(Nanos now) const {
  return !ending_ && now < stop_starting_;
}

bool Driver::Over(Nanos now) {
  const bool interrupted = shared_->cancelled.load(std::memory_order_relaxed);
  if (!ending_ && (now >= cancel_at_ || interrupted)) {
    result_.interrupted = interrupted;
    CancelAll();
  }
  return used_ == 0 && timers_.empty();
}

// The time at which Run() must look again.
Nanos Driver::NextStop() const {
  Nanos stop = target_->Now() - shared_->start + kLook;
  if (!ending_) stop = std::min(stop, cancel_at_);
  if (!timers_.empty()) stop = std::min(stop, timers_.top().at);
  return stop;
}

void Driver::FireDue() {
  while (!timers_.empty() && timers_.top().at <= Now()) {
    const Timer timer = timers_.top();
    timers_.pop();
    Fire(timer);
  }
}

void Driver::Fire(const Timer& timer) {
  switch (timer.due) {
    case Due::kArrival:
      if (MayStart(timer.at)) {
        StartConversation(timer.at, arrival_);
        ScheduleArrival();
      }
      break;
    case Due::kConversation:
      if (MayStart(Now())) NextOfStream(timer.at);
      break;
    case Due::kTurn:
      if (MayStart(Now())) {
        slots_[timer.slot].record.scheduled = timer.at;
        StartTurn(timer.slot);
      } else {
        EndConversation(timer.slot, absl::OkStatus());
      }
      break;
    case Due::kRead:
      target_->Read(timer.slot);
      break;
  }
}

void Driver::NextOfStream(Nanos scheduled) {
  const int64_t conversation =
      shared_->next.fetch_add(1, std::memory_order_relaxed);
  if (options_.requests > 0 && conversation >= options_.requests) return;
  StartConversation(scheduled, conversation);
}

void Driver::StartConversation(Nanos scheduled, int64_t conversation) {
  const bool open = options_.mode == Mode::kOpen;
  if (open && used_ * count_ >= options_.max_running) {
    TurnRecord record{.conversation = conversation, .scheduled = scheduled};
    record.sent = record.end = Now();
    record.outcome = Outcome::kNotSent;
    record.status = "NOT_SENT";
    Count(shared_->progress.failed);
    result_.turns.push_back(std::move(record));
    return;
  }
  const int32_t place = TakeSlot();
  Slot& slot = slots_[place];
  slot.turns = PlanTurns(options_.workload, conversation);
  slot.streams_next = !open;
  slot.record.conversation = conversation;
  slot.record.scheduled = scheduled;
  if (slot.turns == 1) {
    StartTurn(place);
    return;
  }
  slot.session_id = absl::StrCat(shared_->session_prefix, conversation);
  slot.phase = Phase::kCreating;
  slot.record.sent = Now();
  target_->CreateSession(place, slot.session_id);
}

void Driver::StartTurn(int32_t place) {
  Slot& slot = slots_[place];
  slot.plan = PlanTurn(options_.workload, shared_->vocabulary,
                       slot.record.conversation, slot.record.turn);
  slot.plan.request.set_session_id(slot.session_id);
  slot.record.slow_reader = slot.plan.slow_reader;
  slot.record.cancels = slot.plan.cancel_after_tokens >= 0;
  slot.check = StreamCheck();
  slot.cancel_sent = false;
  // The first turn of a session began with making the session.
  if (slot.record.sent < 0) slot.record.sent = Now();
  slot.phase = Phase::kRunning;
  Count(shared_->progress.sent);
  target_->StartTurn(place, slot.plan.request,
                     {slot.session_id, slot.plan.slow_reader});
  if (slot.plan.cancel_after_tokens == 0) {
    slot.cancel_sent = true;
    target_->Cancel(place);
  }
}

void Driver::Handle(const Event& event) {
  if (event.kind == Event::Kind::kResponse) {
    HandleResponse(event.call, *event.response);
    return;
  }
  switch (slots_[event.call].phase) {
    case Phase::kCreating:
      if (!event.status.ok()) slots_[event.call].session_id.clear();
      if (event.status.ok() && !ending_) {
        StartTurn(event.call);
      } else {
        EndTurn(event.call,
                event.status.ok() ? absl::CancelledError() : event.status);
      }
      break;
    case Phase::kRunning:
      EndTurn(event.call, event.status);
      break;
    default:  // its session was deleted, or it never was there
      FreeSlot(event.call);
  }
}

void Driver::HandleResponse(int32_t place,
                            const v1::GenerateResponse& response) {
  Slot& slot = slots_[place];
  const Nanos now = Now();
  const int64_t tokens = slot.check.Add(response);
  if (tokens > 0) {
    CountTokens(slot, tokens, now);
  } else if (response.has_started()) {
    slot.record.prompt_tokens = response.started().prompt_token_count();
  }
  if (slot.plan.cancel_after_tokens >= 0 && !slot.cancel_sent &&
      slot.record.tokens >= slot.plan.cancel_after_tokens) {
    slot.cancel_sent = true;
    target_->Cancel(place);
  }
  if (slot.plan.slow_reader && !slot.cancel_sent && !ending_) {
    Schedule(now + FromSeconds(options_.slow_read_seconds), Due::kRead, place);
  } else {
    target_->Read(place);
  }
}

void Driver::CountTokens(Slot& slot, int64_t tokens, Nanos now) {
  TurnRecord& record = slot.record;
  Count(shared_->progress.tokens, tokens);
  result_.tokens.Add(now, tokens);
  if (record.tokens == 0) {
    record.first_token = now;
  } else {
    const Nanos gap = now - record.last_token;
    record.longest_gap = std::max(record.longest_gap, gap);
    if (record.ordinary() &&
        record.scheduled >= FromSeconds(options_.warmup_seconds)) {
      result_.gaps.Add(gap / tokens, tokens);
    }
  }
  record.last_token = now;
  record.tokens += tokens;
}

void Driver::EndTurn(int32_t place, absl::Status status) {
  Slot& slot = slots_[place];
  TurnRecord& record = slot.record;
  // gRPC drops what was not read, also if the turn's good end had come.
  if (status.ok() && slot.cancel_sent && !slot.check.finished()) {
    status = absl::CancelledError();
  }
  record.end = Now();
  record.status = StatusName(status);
  record.problem = slot.check.End(status);
  // A session that was not made has no stream to check.
  if (slot.phase == Phase::kCreating) record.problem.clear();
  if (status.ok()) {
    record.outcome = Outcome::kOk;
  } else if (ending_) {
    record.outcome = Outcome::kIncomplete;
  } else if (slot.cancel_sent && absl::IsCancelled(status)) {
    record.outcome = Outcome::kCancelled;
  } else {
    record.outcome = IsRefusal(status) && record.tokens == 0
                         ? Outcome::kRejected
                         : Outcome::kFailed;
    record.error = std::string(absl::StripPrefix(
        DescribeError(status), absl::StrCat(record.status, ": ")));
    Count(shared_->progress.failed);
  }
  if (slot.phase == Phase::kRunning) Count(shared_->progress.ended);
  const int64_t next = record.turn + 1;
  const int64_t conversation = record.conversation;
  const bool goes_on =
      record.outcome == Outcome::kOk || record.outcome == Outcome::kCancelled;
  const Nanos end = record.end;
  result_.turns.push_back(std::move(record));
  if (next >= slot.turns || !goes_on || ending_) {
    EndConversation(place, status);
    return;
  }
  slot.record = {.conversation = conversation, .turn = next};
  slot.phase = Phase::kThinking;
  Schedule(end + FromSeconds(
                     PlanThinkSeconds(options_.workload, conversation, next)),
           Due::kTurn, place);
}

void Driver::EndConversation(int32_t place, const absl::Status& status) {
  Slot& slot = slots_[place];
  if (slot.streams_next) {
    Schedule(Now() + (status.ok() ? 0 : kRetryPause), Due::kConversation);
  }
  if (slot.session_id.empty()) {
    FreeSlot(place);
  } else {
    slot.phase = Phase::kDeleting;
    target_->DeleteSession(place, slot.session_id);
  }
}

void Driver::CancelAll() {
  ending_ = true;
  // What waits: slow readers read on, so that they see the end.
  std::vector<int32_t> readers;
  std::vector<int32_t> thinkers;
  for (; !timers_.empty(); timers_.pop()) {
    const Timer& timer = timers_.top();
    if (timer.due == Due::kRead) readers.push_back(timer.slot);
    if (timer.due == Due::kTurn) thinkers.push_back(timer.slot);
  }
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Phase phase = slots_[i].phase;
    slots_[i].streams_next = false;
    if (phase == Phase::kRunning || phase == Phase::kCreating) {
      slots_[i].cancel_sent = true;
      target_->Cancel(static_cast<int32_t>(i));
    }
  }
  for (const int32_t slot : readers) target_->Read(slot);
  for (const int32_t slot : thinkers) EndConversation(slot, absl::OkStatus());
}

int32_t Driver::TakeSlot() {
  if (free_.empty()) {
    free_.push_back(static_cast<int32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const int32_t slot = free_.back();
  free_.pop_back();
  ++used_;
  return slot;
}

void Driver::FreeSlot(int32_t slot) {
  slots_[slot] = Slot();
  free_.push_back(slot);
  --used_;
}

}  // namespace txl::bench
