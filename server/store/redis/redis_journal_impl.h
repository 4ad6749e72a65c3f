#pragma once

// RedisJournal's class, the journal on one shard: entries and reads in
// redis_journal.cc, its thread in redis_journal_loop.cc.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "server/base/boot_time.h"
#include "server/store/entering_journal.h"
#include "server/store/redis/redis_journal.h"
#include "server/store/redis/redis_reads.h"
#include "server/store/redis/redis_sender.h"
#include "server/store/store_errors.h"

namespace txl {

class RedisJournal final : public EnteringJournal<SharedJournal> {
 public:
  RedisJournal(const RedisJournalOptions& options,
               std::unique_ptr<RedisShard> shard);
  ~RedisJournal() override;

  // One that the storage did not hear of is asked for again later.
  uint64_t Expire(const std::string& session_id, absl::Time now) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const std::shared_ptr<SessionClaim> claim = HeldClaim(session_id);
    Push(Asked(session_id, [session_id, claim, now] {
      return ExpireCall(session_id, claim.get(), now);
    }));
    return ++last_entry_;
  }

  uint64_t last_entry() const override { return last_entry_; }
  uint64_t durable_entry() const override {
    return durable_entry_.load(std::memory_order_acquire);
  }
  void WhenDurable(uint64_t entry,
                   std::function<void(const absl::Status&)> done) override {
    absl::Status status;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const bool there = entry <= durable_entry();
      if (!there && (!full_ || entry > tried_)) {
        told_.emplace(entry, std::move(done));
        hurry_ = true;
        changed_.notify_all();
        return;
      }
      if (!there) status = StoreFullError();
    }
    done(status);
  }

  void Hold(const std::string& session_id,
            std::shared_ptr<SessionClaim> claim) override {
    std::lock_guard<std::mutex> lock(mutex_);
    held_[session_id] = std::move(claim);
  }
  void Drop(const std::string& session_id,
            const std::shared_ptr<SessionClaim>& claim) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = held_.find(session_id);
    if (found != held_.end() && found->second == claim) held_.erase(found);
  }

  void Load(const std::string& session_id,
            std::function<void(absl::StatusOr<StoredSession>)> done) override {
    Refresh(session_id, nullptr,
            [done = std::move(done)](absl::StatusOr<SharedSession> found) {
              if (!found.ok()) return done(found.status());
              done(*std::move(found->stored));
            });
  }
  void Refresh(const std::string& session_id,
               std::shared_ptr<SessionClaim> held, Done done) override {
    RedisItem item;
    item.session_id = session_id;
    item.make = [session_id, held] { return LoadCall(session_id, held.get()); };
    item.answered = [this, session_id, held,
                     done = std::move(done)](const RedisAnswer& answer) {
      done(ReadShared(caller_, session_id, held, answer));
    };
    Ask(std::move(item));
  }
  void Acquire(const std::string& session_id, const TurnIdentity& identity,
               std::shared_ptr<SessionClaim> held, Done done) override;
  void Release(const std::string& session_id) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const std::shared_ptr<SessionClaim> claim = HeldClaim(session_id);
    if (claim == nullptr) return;
    Push(Asked(session_id, [session_id, claim] {
      return claim->version.owned ? ReleaseCall(session_id, *claim)
                                  : RedisCommand();
    }));
    hurry_ = true;
    changed_.notify_all();
  }
  absl::Status TakeRefusal(const std::string& session_id) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = refusals_.find(session_id);
    if (found == refusals_.end()) return absl::OkStatus();
    absl::Status status = std::move(found->second);
    refusals_.erase(found);
    return status;
  }
  void OnMoved(std::function<void(const std::string& session_id,
                                  const std::shared_ptr<SessionClaim>& claim)>
                   moved) override {
    std::lock_guard<std::mutex> lock(mutex_);
    moved_ = std::move(moved);
  }
  absl::Duration Silent() const override {
    const int64_t since = silent_since_;
    return since == 0 ? absl::ZeroDuration()
                      : BootTime() - absl::Nanoseconds(since);
  }

  void List(const std::string& after, int64_t count,
            std::function<void(absl::StatusOr<std::vector<StoredInfo>>)> done)
      override {
    Direct([this, after, count, done = std::move(done)] {
      done(ListSessions(*shard_, after, count));
    });
  }
  void ListExpired(
      absl::Time now, int64_t count,
      std::function<void(absl::StatusOr<std::vector<StoredPosition>>)> done)
      override {
    Direct([this, now, count, done = std::move(done)] {
      done(ListExpiredSessions(*shard_, now, count));
    });
  }
  void Positions(const std::string& session_id,
                 std::function<void(const StoredPosition&)> each,
                 std::function<void(const absl::Status&)> done) override {
    Direct([this, session_id, each = std::move(each), done = std::move(done)] {
      done(TellPositions(*shard_, session_id, each));
    });
  }

  JournalStatus status() const override {
    JournalStatus status;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      status = counted_;
      status.full = full_;
    }
    status.entries = last_entry();
    status.durable = durable_entry();
    status.commits = status.commit_seconds.count();
    status.tokens_waiting = tokens_entered_ - status.tokens_written;
    return status;
  }
  void Drain(absl::Duration timeout) override {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t last = last_entry();
    hurry_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout), [&] {
      return durable_entry() >= last && queue_.empty();
    });
  }

 private:
  uint64_t Enter(JournalEntry entry) override;
  void Ask(RedisItem item);
  void Direct(std::function<void()> read);
  static RedisItem Asked(const std::string& session_id,
                         std::function<RedisCommand()> make) {
    RedisItem item;
    item.session_id = session_id;
    item.make = std::move(make);
    return item;
  }
  // Under mutex_.
  void Push(RedisItem item) { queue_.push_back(std::move(item)); }
  std::shared_ptr<SessionClaim> HeldClaim(const std::string& session_id) const;

  void Loop();
  void WaitForWork(std::unique_lock<std::mutex>& lock);
  std::vector<RedisItem> TakeItems();
  void EndPass(const RedisPass& pass, uint64_t last,
               std::chrono::steady_clock::time_point begin);
  // Whether the storage answers; says it once.
  void Heard(const absl::Status& status);
  void TellMoved(const std::string& session_id,
                 const std::shared_ptr<SessionClaim>& claim);
  void Tick();
  void Touch(const std::string& session_id,
             const std::shared_ptr<SessionClaim>& claim);

  const std::chrono::nanoseconds interval_;
  const RedisCaller caller_;
  // Of the thread.
  const std::unique_ptr<RedisShard> shard_;
  RedisSender sender_;
  std::chrono::steady_clock::time_point next_tick_;
  uint64_t sent_ = 0;  // the last entry that sender_ was given
  int64_t sent_tokens_ = 0;

  std::atomic<uint64_t> last_entry_{0};
  std::atomic<uint64_t> durable_entry_{0};
  std::atomic<int64_t> tokens_entered_{0};
  std::atomic<int64_t> silent_since_{0};  // BootTime; 0: it answers

  // Not Abseil's, whose timeouts follow the wall clock and its jumps.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_.
  std::vector<RedisItem> queue_;
  std::vector<std::function<void()>> reads_;  // behind the queue
  std::multimap<uint64_t, std::function<void(const absl::Status&)>> told_;
  std::unordered_map<std::string, std::shared_ptr<SessionClaim>> held_;
  std::unordered_map<std::string, absl::Status> refusals_;
  std::function<void(const std::string&, const std::shared_ptr<SessionClaim>&)>
      moved_;
  JournalStatus counted_;
  uint64_t tried_ = 0;  // the last entry that was sent
  int64_t queued_tokens_ = 0;
  bool hurry_ = false;
  bool full_ = false;
  bool retries_ = false;
  bool stopping_ = false;
  std::thread thread_;  // last
};

}  // namespace txl
