#include "server/api/token_stream.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "server/api/convert_output.h"
#include "server/api/turn_submit.h"
#include "server/scheduler/resting_turns.h"

namespace txl {

std::shared_ptr<TokenStream> TokenStream::Create(CallWriter* writer,
                                                 TokenStreamOptions options) {
  std::shared_ptr<TokenStream> stream(
      new TokenStream(writer, std::move(options)));
  absl::MutexLock lock(&stream->mutex_);
  stream->self_ = stream;
  stream->times_.queued = stream->Now();
  return stream;
}

TokenStream::TokenStream(CallWriter* writer, TokenStreamOptions options)
    : writer_(writer),
      options_(std::move(options)),
      queue_(options_.record.metrics) {}

void TokenStream::Started(const TurnStarted& started) {
  {
    absl::MutexLock lock(&mutex_);
    prompt_tokens_ = started.prompt_tokens;
    times_.started = Now();
  }
  Push(started, std::nullopt);
}

void TokenStream::Token(TokenEvent event) {
  Push(std::move(event), std::nullopt);
}

// Only kAppend and kScore turns are scored; they have another sink.
void TokenStream::Scored(std::vector<ScoredToken>) {}

void TokenStream::Finished(const TurnFinished& finished) {
  {
    absl::MutexLock lock(&mutex_);
    cached_tokens_ = finished.cached_tokens;
    EndWell(finished.timing, &times_);
  }
  Push(finished, absl::OkStatus());
}

void TokenStream::Failed(const absl::Status& status) {
  std::shared_ptr<TokenStream> self;
  {
    absl::MutexLock lock(&mutex_);
    if (done_ || end_.has_value()) return;
    end_ = status;
    times_.ended = Now();
    self = self_;
    if (writing_) {
      options_.callbacks->Run([self] { self->WatchForStall(); });
      return;
    }
    writing_ = true;
  }
  options_.callbacks->Run([self] {
    self->WatchForStall();
    self->Pump();
  });
}

void TokenStream::Push(StreamEvent event, std::optional<absl::Status> end) {
  absl::MutexLock lock(&mutex_);
  if (done_ || end_.has_value()) return;
  if (std::holds_alternative<TokenEvent>(event)) {
    ++tokens_;
    if (!times_.fed.has_value()) times_.fed = Now();
  }
  if (!broken_) queue_.Push(std::move(event));
  const bool last = end.has_value();
  if (last) end_ = std::move(end);
  const bool pump = !writing_;
  writing_ = true;
  if (!last && !pump) return;
  options_.callbacks->Run([self = self_, last, pump] {
    if (last) self->WatchForStall();
    if (pump) self->Pump();
  });
}

void TokenStream::SetMaxTokens(int32_t max_tokens) {
  absl::MutexLock lock(&mutex_);
  max_tokens_ = max_tokens;
}

void TokenStream::Replay(std::shared_ptr<const TurnRecord> record,
                         size_t first) {
  const TurnStarted started = StartedAgain(*record);
  absl::MutexLock lock(&mutex_);
  if (done_ || end_.has_value()) return;
  prompt_tokens_ = started.prompt_tokens;
  times_ = TurnTimes();  // nothing waits and nothing runs
  queue_.Push(started);
  replay_ = std::move(record);
  replay_next_ = first;
  end_ = absl::OkStatus();
  const bool pump = !writing_;
  writing_ = true;
  options_.callbacks->Run([self = self_, pump] {
    self->WatchForStall();
    if (pump) self->Pump();
  });
}

int TokenStream::Unsent() const {
  absl::MutexLock lock(&mutex_);
  return UnsentLocked();
}

void TokenStream::Pump() {
  std::optional<absl::Status> finish;
  v1::GenerateResponse message;
  bool write = false;
  {
    absl::MutexLock lock(&mutex_);
    if (broken_) {
      queue_.Clear();
      replay_ = nullptr;
    }
    if (HasNext()) {
      message = NextMessage();
      write = true;
    }
    if (!HasNext() && end_.has_value() && (end_->ok() || !write)) {
      finish = *end_;
    }
    if (!write && !finish.has_value()) {
      writing_ = false;
      return;
    }
  }
  // Outside of the lock: the transport may call back.
  if (write && finish.has_value()) {
    writer_->WriteAndFinish(message);
  } else if (write) {
    writer_->Write(message);
  } else {
    writer_->Finish(*finish);
  }
}

bool TokenStream::TokenIsNext() const {
  if (!queue_.empty()) return queue_.token_is_next();
  return replay_ != nullptr && replay_next_ < replay_->tokens.size();
}

StreamEvent TokenStream::TakeNext() {
  if (!queue_.empty()) return queue_.Pop();
  if (TokenIsNext()) {
    ++tokens_;
    return replay_->tokens[replay_next_++];
  }
  const auto record = std::move(replay_);
  replay_ = nullptr;
  return *record->finished;
}

v1::GenerateResponse TokenStream::NextMessage() {
  v1::GenerateResponse message;
  StreamEvent event = TakeNext();
  in_flight_ = 1;
  if (const auto* started = std::get_if<TurnStarted>(&event)) {
    *message.mutable_started() = options_.started;
    WriteStarted(*started, message.mutable_started());
    if (max_tokens_ > 0) {
      message.mutable_started()->mutable_stop()->set_max_tokens(max_tokens_);
    }
  } else if (const auto* finished = std::get_if<TurnFinished>(&event)) {
    WriteFinished(*finished, message.mutable_finished());
  } else {
    FillTokens(std::get<TokenEvent>(std::move(event)), &message);
  }
  return message;
}

void TokenStream::FillTokens(TokenEvent first, v1::GenerateResponse* message) {
  if (options_.tokens_per_message == 1 || !TokenIsNext()) {
    WriteToken(first, options_.bytes_of, message->mutable_token());
    return;
  }
  v1::TokenBatch* batch = message->mutable_tokens();
  WriteToken(first, options_.bytes_of, batch->add_tokens());
  while (TokenIsNext() && batch->tokens_size() < options_.tokens_per_message) {
    WriteToken(std::get<TokenEvent>(TakeNext()), options_.bytes_of,
               batch->add_tokens());
  }
  in_flight_ = batch->tokens_size();
}

void TokenStream::OnWriteDone(bool ok) {
  bool may_unpark;
  {
    absl::MutexLock lock(&mutex_);
    // The scheduler looks at both: see resting_turns.h.
    const int before = UnsentLocked();
    const int caught_up = CaughtUpEvents(options_.park_events);
    written_ += in_flight_;
    in_flight_ = 0;
    may_unpark = before >= options_.park_events ||
                 (before > caught_up && UnsentLocked() <= caught_up);
    if (!ok) broken_ = true;
  }
  if (!ok) {
    CancelTurn(options_.record, options_.deadline, cancel_.get());
  }
  if (!ok || may_unpark) options_.wake();
  Pump();
}

void TokenStream::OnCancel() {
  CancelTurn(options_.record, options_.deadline, cancel_.get());
  options_.wake();
}

void TokenStream::OnDone() {
  std::shared_ptr<TokenStream> self;
  absl::Status status;
  CallRecord record = options_.record;
  {
    absl::MutexLock lock(&mutex_);
    done_ = true;
    self = std::move(self_);
    status = end_.value_or(absl::CancelledError());
    record.prompt_tokens = prompt_tokens_;
    record.cached_tokens = cached_tokens_;
    record.generated_tokens = tokens_;
    record.times = times_;
    queue_.Clear();
    replay_ = nullptr;
  }
  EndRecord(record, status);
}

void TokenStream::WatchForStall() {
  absl::MutexLock lock(&mutex_);
  if (done_) return;
  writer_->After(options_.stall_limit,
                 [weak = weak_from_this(), written = written_] {
                   if (auto self = weak.lock()) self->OnStallAlarm(written);
                 });
}

void TokenStream::OnStallAlarm(int64_t written_then) {
  {
    absl::MutexLock lock(&mutex_);
    if (done_) return;  // the writer is gone
    if (written_ - written_then < options_.least_events) {
      writer_->Cancel();
      return;
    }
  }
  WatchForStall();
}

void EventQueue::Push(StreamEvent event) {
  if (IsToken(event)) metrics_->AddStreamTokens(1);
  events_.push_back(std::move(event));
}

StreamEvent EventQueue::Pop() {
  StreamEvent event = std::move(events_.front());
  events_.pop_front();
  if (IsToken(event)) metrics_->AddStreamTokens(-1);
  return event;
}

void EventQueue::Clear() {
  if (events_.empty()) return;
  metrics_->AddStreamTokens(-static_cast<int64_t>(
      std::count_if(events_.begin(), events_.end(), IsToken)));
  events_.clear();
}

}  // namespace txl
