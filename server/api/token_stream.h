#pragma once

// A Generate call's answer: takes the scheduler's events and writes them to
// the stream, one write in flight, in order. The scheduler's thread only
// queues; the transport is called from the callback thread and its own threads.
//
// The queue is bounded from outside: the scheduler parks a turn whose Unsent()
// reaches its limit. A turn that is told again is read from its record as the
// client reads, and takes no queue. A client that does not read the rest of an
// ended turn loses its call: `least_events` must be written in every
// `stall_limit`; the rest includes the status, which no transport can send past
// unread messages.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "model/text/vocabulary.h"
#include "server/api/api_call.h"
#include "server/api/call_record.h"
#include "server/base/task_thread.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/turn.h"
#include "server/session/turn_record.h"
#include "txl/v1/generation_service.pb.h"

namespace txl {

// What a stream has taken from the scheduler and not yet given to gRPC, in
// order. The tokens among it are counted in the server's metrics.

using StreamEvent = std::variant<TurnStarted, TokenEvent, TurnFinished>;

// Thread-compatible.
class EventQueue {
 public:
  // `metrics` outlives the queue.
  explicit EventQueue(Metrics* metrics) : metrics_(metrics) {}
  ~EventQueue() { Clear(); }
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  void Push(StreamEvent event);
  // The oldest event. REQUIRES: not empty.
  StreamEvent Pop();
  void Clear();

  bool empty() const { return events_.empty(); }
  size_t size() const { return events_.size(); }
  // Whether the oldest event is one.
  bool token_is_next() const {
    return !events_.empty() && IsToken(events_.front());
  }

 private:
  static bool IsToken(const StreamEvent& event) {
    return std::holds_alternative<TokenEvent>(event);
  }

  Metrics* const metrics_;
  std::deque<StreamEvent> events_;
};

struct TokenStreamOptions {
  // Sent when the turn starts; what TurnStarted says is filled in.
  v1::Started started;
  const Vocabulary* bytes_of = nullptr;  // source of token_bytes; null: none
  int32_t tokens_per_message = 1;
  absl::Duration stall_limit = absl::Seconds(30);
  int64_t least_events = 1;
  // Unsent events at which the scheduler parks the turn; it is woken below,
  // and when the reader has caught up.
  int32_t park_events = 64;
  std::optional<absl::Duration> deadline;  // on the record's clock
  std::function<void()> wake;              // the scheduler
  TaskThread* callbacks = nullptr;
  CallRecord record;
};

// Lives until the transport is done with the call and the scheduler with the
// sink.
class TokenStream final : public TokenSink,
                          public CallEvents,
                          public std::enable_shared_from_this<TokenStream> {
 public:
  // `writer` lives until OnDone.
  static std::shared_ptr<TokenStream> Create(CallWriter* writer,
                                             TokenStreamOptions options);

  // What Started says of stop.max_tokens. REQUIRES: nothing was told yet.
  void SetMaxTokens(int32_t max_tokens) ABSL_LOCKS_EXCLUDED(mutex_);
  // Tells a finished turn again, but for the tokens before `first`, instead of
  // all calls of TokenSink. REQUIRES: record->finished, first <= its tokens.
  void Replay(std::shared_ptr<const TurnRecord> record, size_t first = 0);

  const std::shared_ptr<CancelToken>& cancel() const { return cancel_; }
  std::optional<absl::Duration> deadline() const { return options_.deadline; }

  // TokenSink.
  void Started(const TurnStarted& started) override;
  void Token(TokenEvent event) override;
  void Scored(std::vector<ScoredToken> tokens) override;
  void Finished(const TurnFinished& finished) override;
  void Failed(const absl::Status& status) override;
  int Unsent() const override;

  // CallEvents.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  TokenStream(CallWriter* writer, TokenStreamOptions options);

  void Push(StreamEvent event, std::optional<absl::Status> end);
  // Writes what is there, or finishes. REQUIRES: the caller owns the writer
  // (set writing_ itself, or is its write's completion).
  void Pump();
  // Takes the next message's events off the queue or the record.
  v1::GenerateResponse NextMessage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasNext() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !queue_.empty() || replay_ != nullptr;
  }
  bool TokenIsNext() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // REQUIRES: HasNext.
  StreamEvent TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillTokens(TokenEvent first, v1::GenerateResponse* message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration Now() const { return options_.record.clock->Monotonic(); }
  void WatchForStall();
  void OnStallAlarm(int64_t written_then);
  int UnsentLocked() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return static_cast<int>(queue_.size()) + in_flight_;
  }

  CallWriter* const writer_;
  const TokenStreamOptions options_;
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();

  mutable absl::Mutex mutex_;
  std::shared_ptr<TokenStream> self_ ABSL_GUARDED_BY(mutex_);  // until OnDone
  EventQueue queue_ ABSL_GUARDED_BY(mutex_);
  // What is told again behind the queue, and its next token; null: nothing.
  std::shared_ptr<const TurnRecord> replay_ ABSL_GUARDED_BY(mutex_);
  size_t replay_next_ ABSL_GUARDED_BY(mutex_) = 0;
  int in_flight_ ABSL_GUARDED_BY(mutex_) = 0;  // events of the running write
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;  // a write failed
  bool done_ ABSL_GUARDED_BY(mutex_) = false;    // the call is gone
  int64_t written_ ABSL_GUARDED_BY(mutex_) = 0;  // events
  int64_t tokens_ ABSL_GUARDED_BY(mutex_) = 0;   // taken
  int64_t prompt_tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t cached_tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  int32_t max_tokens_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: as in the options
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
  TurnTimes times_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
