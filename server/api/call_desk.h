#pragma once

// Where calls are taken on: who is let in, how much may be in flight, and which
// calls wait for their clients.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/api/call_record.h"
#include "server/api/peer_watch.h"
#include "server/api/service_context.h"
#include "server/api/work_pool.h"
#include "server/base/byte_budget.h"
#include "server/base/task_thread.h"
#include "server/metrics/server_status.h"

namespace txl {

// Calls that wait for their clients, the oldest first: to end those that wait
// for too long, or the oldest where there is no room.

// Thread-safe. Only the thread that takes a call off the list may act on the
// end of its wait.
template <typename Call>
class WaitList {
 public:
  using Place = uint64_t;

  // `now` never goes back from one call to the next, but for a little.
  Place Add(std::weak_ptr<Call> call, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    calls_.emplace(next_, Waiting{std::move(call), now});
    return next_++;
  }

  // False: somebody else has taken it off.
  bool Remove(Place place) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return calls_.erase(place) > 0;
  }

  // Takes off all that came before `time`, `most` at most.
  std::vector<std::shared_ptr<Call>> Take(absl::Duration time, int most)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::shared_ptr<Call>> taken;
    absl::MutexLock lock(&mutex_);
    while (!calls_.empty() && calls_.begin()->second.since < time &&
           static_cast<int>(taken.size()) < most) {
      // Null where the call is about to take itself off.
      if (auto call = calls_.begin()->second.call.lock()) {
        taken.push_back(std::move(call));
      }
      calls_.erase(calls_.begin());
    }
    return taken;
  }

  int64_t size() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return static_cast<int64_t>(calls_.size());
  }

 private:
  struct Waiting {
    std::weak_ptr<Call> call;
    absl::Duration since;
  };

  mutable absl::Mutex mutex_;
  Place next_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<Place, Waiting> calls_ ABSL_GUARDED_BY(mutex_);
};

// Whom a method serves when others are refused.
enum class Admission {
  kAlways,   // the server's own state: in every phase, however full it is
  kServing,  // what gives room or takes little: while the server serves
  kNewWork,  // everything else: not while memory is short
};

// What a call takes beside its message: gRPC's and our own objects, and what a
// client may send before its message is read (kWindowBytes).
inline constexpr int64_t kCallBytes = 32 << 10;
// What a message becomes: it is kept while it is parsed, as a message, as
// checked values and as a turn's input.
inline constexpr int64_t kMessageExpansion = 6;

// A call that waits for its client. The first three run on the callback thread,
// one after the other, but for a StartReading while the call is being made.
class WaitingCall {
 public:
  virtual ~WaitingCall() = default;
  virtual void StartReading() = 0;
  // The request has not come whole: for too long, or others need the room.
  virtual void TimeOutReading() = 0;
  virtual void GiveUpReading() = 0;
  // The answer has not been read.
  virtual void CutOff() = 0;
};

// Thread-safe.
class CallDesk {
 public:
  explicit CallDesk(const ServiceContext* context);

  const ServiceContext& context() const { return context_; }

  // A call of the peer has come, whatever becomes of it; Closed is due when
  // its transport is done with it; for transports whose connections open many.
  // A connection that has opened far more than it may
  // loses them all.
  void Opened(const std::string& peer);
  void Closed(const std::string& peer) { peers_.Closed(peer); }

  // Lets a call in, before anything of its message is read; OK: Leave is due.
  // Errors: NOT_READY, DRAINING, OVERLOADED.
  absl::Status Enter(Admission admission);
  void Leave(Admission admission);

  // OVERLOADED while memory is short.
  absl::Status CheckMemory();
  // Counts.
  absl::Status Overloaded(absl::string_view message);

  // Errors of all that follow: OVERLOADED; OVER_LIMIT of what would never fit.
  // Room for a call of whose message nothing is known.
  absl::StatusOr<ByteHold> HoldCall();
  // Room for a message of `bytes` and what is made of it.
  absl::StatusOr<ByteHold> HoldRequest(int64_t bytes);
  // Room for so many bytes that are kept of a request in several messages.
  absl::StatusOr<ByteHold> HoldPart(int64_t bytes);
  // Room for an answer. Where there is none, the answer that has been unread
  // for longest is cut off.
  absl::StatusOr<ByteHold> HoldAnswer(int64_t bytes);
  // Holds room among the answers that are written and unread.
  absl::StatusOr<ByteHold> HoldUnread(int64_t bytes);

  CallLines& lines() { return lines_; }
  // Lets the call read its message, by StartReading, now or soon: so many at a
  // time, connections in turn. Where others wait, a call that has been reading
  // for long is ended.
  void AskToRead(const std::string& peer, std::weak_ptr<WaitingCall> call)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A call that was let read has its message, or has ended.
  void DoneReading() ABSL_LOCKS_EXCLUDED(mutex_);

  WaitList<WaitingCall>& reading() { return reading_; }
  WaitList<WaitingCall>& answering() { return answering_; }
  absl::Duration Now() const { return context_.clock->Monotonic(); }

  // Ends the calls whose clients have taken too long.
  void Sweep();

  CallCounts counts() const;
  // Another transport that knows its connections; may be asked as long as the
  // desk lives.
  void AddConnections(std::function<ConnectionCounts()> counts)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    connections_.push_back(std::move(counts));
  }
  // Who ends a peer's connection; before the first call.
  void SetCutOff(std::function<void(const std::string& peer)> cut_off) {
    cut_off_ = std::move(cut_off);
  }
  // A peer has ended a call before its message was there. One that does little
  // else loses its connection: a reset costs it far less than it costs us.
  void CountReset(const std::string& peer);
  // All of GetServerStatus.
  ServerStatus Status() const;

 private:
  // Ends the call that has been reading for longest, if it is long; false:
  // there is none.
  bool EndSlowestReader();
  absl::StatusOr<ByteHold> HoldOrCutOff(ByteBudget& budget, int64_t bytes);

  const ServiceContext& context_;
  std::atomic<int64_t> open_{0};
  std::atomic<int64_t> always_{0};  // of these: Admission::kAlways
  std::atomic<int64_t> refused_{0};
  const int64_t most_readers_;
  mutable absl::Mutex mutex_;
  int64_t readers_ ABSL_GUARDED_BY(mutex_) = 0;
  FairQueue<std::weak_ptr<WaitingCall>> to_read_ ABSL_GUARDED_BY(mutex_);
  CallLines lines_;
  ByteBudget unread_;
  WaitList<WaitingCall> reading_;
  WaitList<WaitingCall> answering_;
  PeerWatch peers_;
  std::function<void(const std::string&)> cut_off_;  // may be null
  std::vector<std::function<ConnectionCounts()>> connections_
      ABSL_GUARDED_BY(mutex_);
  Periodic sweeper_;  // last
};

}  // namespace txl
