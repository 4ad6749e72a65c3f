#pragma once

// The journal of sessions in Redis, for servers that share them: txl_1.lua says
// what is kept and how it is guarded. Its thread takes all entries that have
// come, joins those of a turn, and sends them together, each `interval` or at
// once when somebody waits. "Stable storage" is what Redis answers after: with
// `appendfsync always` its disk.
//
// While Redis does not answer, entries wait, and reads fail with
// STORE_UNAVAILABLE.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/byte_budget.h"
#include "server/session/shared_journal.h"
#include "server/store/journal_entry.h"
#include "server/store/redis/redis_calls.h"
#include "server/store/redis/redis_connection.h"
#include "server/store/redis/redis_sender.h"

namespace txl {

struct RedisJournalOptions {
  RedisAddress address;
  absl::Duration interval = absl::Seconds(1);
  // A session is its owner's for so long after each change.
  absl::Duration lease = absl::Seconds(5);
  // Maximum wait for an answer; then the connection counts as broken.
  absl::Duration timeout = absl::Seconds(2);
  std::string fingerprint;  // of the model
  int64_t vocab_size = 0;
  // What running turns keep to send again is taken from it, as long as less
  // than half is used. Outlives the journal. Null: only turns have a limit.
  ByteBudget* kept = nullptr;
};

class RedisJournal final : public EnteringJournal<SharedJournal> {
 public:
  // Errors name the address: FailedPrecondition (it does not keep what it
  // confirms: no primary, no append-only file, an eviction policy, or it is
  // older than version 7), Unavailable.
  static absl::StatusOr<std::unique_ptr<RedisJournal>> Open(
      const RedisJournalOptions& options);
  ~RedisJournal() override;

  // What is confirmed may not be on a disk for up to two seconds: Redis has
  // `appendfsync everysec`. As it was when the journal was opened.
  bool late() const { return link_.late(); }

  // One that the storage did not hear of is asked for again later.
  uint64_t Expire(const std::string& session_id, absl::Time now,
                  std::function<void()> removed) override;

  uint64_t last_entry() const override { return last_entry_; }
  uint64_t durable_entry() const override {
    return durable_entry_.load(std::memory_order_acquire);
  }
  void WhenDurable(uint64_t entry,
                   std::function<void(const absl::Status&)> done) override;

  void Hold(const std::string& session_id,
            std::shared_ptr<SessionClaim> claim) override;
  void Drop(const std::string& session_id,
            const std::shared_ptr<SessionClaim>& claim) override;

  void Load(const std::string& session_id,
            std::function<void(absl::StatusOr<StoredSession>)> done) override;
  void Refresh(const std::string& session_id,
               std::shared_ptr<SessionClaim> held, Done done) override;
  void Acquire(const std::string& session_id, const TurnIdentity& identity,
               std::shared_ptr<SessionClaim> held, Done done) override;
  void Release(const std::string& session_id) override;
  absl::Status TakeRefusal(const std::string& session_id) override;
  void OnMoved(std::function<void(const std::string& session_id,
                                  const std::shared_ptr<SessionClaim>& claim)>
                   moved) override;

  absl::Duration Silent() const override;

  void List(const std::string& after, int64_t count,
            std::function<void(absl::StatusOr<std::vector<StoredInfo>>)> done)
      override;
  void ListExpired(
      absl::Time now, int64_t count,
      std::function<void(absl::StatusOr<std::vector<StoredPosition>>)> done)
      override;
  void Positions(const std::string& session_id,
                 std::function<void(const StoredPosition&)> each,
                 std::function<void(const absl::Status&)> done) override;

  JournalStatus status() const override;
  void Drain(absl::Duration timeout) override;

 private:
  RedisJournal(const RedisJournalOptions& options, RedisLink link);

  uint64_t Enter(JournalEntry entry) override;
  void Ask(RedisItem item);
  void Direct(std::function<void()> read);
  // Under mutex_.
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
  // Members that only the journal's thread uses.
  RedisLink link_;
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
  // In the order of the entries.
  std::unordered_map<std::string, std::deque<absl::Status>> refusals_;
  std::function<void(const std::string&, const std::shared_ptr<SessionClaim>&)>
      moved_;
  JournalStatus counted_;
  uint64_t tried_ = 0;  // the last entry that was sent
  bool hurry_ = false;
  bool full_ = false;
  bool retries_ = false;
  bool stopping_ = false;
  std::thread thread_;  // last
};

}  // namespace txl
