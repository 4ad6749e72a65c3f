#include "server/store/sqlite_journal.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "model/base/status_macros.h"
#include "server/base/log.h"
#include "server/store/database.h"
#include "server/store/journal_entry.h"
#include "server/store/journal_storage.h"

namespace txl {
namespace {

constexpr auto kFullRetry = std::chrono::seconds(1);

// What went wrong under a read, as its reader is told.
template <typename T>
absl::StatusOr<T> Told(absl::StatusOr<T> read) {
  if (absl::IsUnavailable(read.status())) return StoreFailedError();
  return read;
}

class SqliteJournal final : public EnteringJournal<SessionJournal> {
 public:
  SqliteJournal(absl::Duration interval,
                std::unique_ptr<JournalStorage> storage)
      : interval_(absl::ToChronoNanoseconds(interval)),
        storage_(std::move(storage)),
        sessions_(storage_->tables().sessions()),
        bytes_(storage_->Bytes()) {
    thread_ = std::thread([this] { Loop(); });
  }

  ~SqliteJournal() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  uint64_t last_entry() const override {
    return last_entry_.load(std::memory_order_acquire);
  }
  uint64_t durable_entry() const override {
    return durable_entry_.load(std::memory_order_acquire);
  }

  void WhenDurable(uint64_t entry,
                   std::function<void(const absl::Status&)> done) override {
    absl::Status status;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (entry > durable_entry()) {
        // Only what was tried is refused: the entry may be what makes room.
        if (failed_) {
          status = StoreFailedError();
        } else if (full_ && entry <= tried_) {
          status = StoreFullError();
        } else {
          waiting_.push_back({entry, std::move(done)});
          hurry_ = true;
          changed_.notify_all();
          return;
        }
      }
    }
    done(status);
  }

  void Load(const std::string& session_id,
            std::function<void(absl::StatusOr<StoredSession>)> done) override {
    Read([this, session_id, done = std::move(done)] {
      const absl::Status kept = MayRead(session_id);
      done(kept.ok() ? Told(storage_->tables().Load(session_id)) : kept);
    });
  }
  void List(const std::string& after, int64_t count,
            std::function<void(absl::StatusOr<std::vector<StoredInfo>>)> done)
      override {
    Read([this, after, count, done = std::move(done)] {
      const absl::Status kept = MayRead("");
      done(kept.ok() ? Told(storage_->tables().List(after, count)) : kept);
    });
  }
  void ListExpired(
      absl::Time now, int64_t count,
      std::function<void(absl::StatusOr<std::vector<StoredPosition>>)> done)
      override {
    Read([this, now, count, done = std::move(done)] {
      if (!MayRead("").ok()) return done(MayRead(""));
      absl::StatusOr<std::vector<StoredPosition>> expired =
          Told(storage_->tables().ListExpired(now, count));
      if (expired.ok()) {
        std::erase_if(*expired, [&](const StoredPosition& session) {
          return !MayRead(session.session_id).ok();
        });
      }
      done(std::move(expired));
    });
  }
  void Positions(const std::string& session_id,
                 std::function<void(const StoredPosition&)> each,
                 std::function<void(const absl::Status&)> done) override {
    Read([this, session_id, each = std::move(each), done = std::move(done)] {
      absl::Status status = MayRead(session_id);
      if (status.ok()) status = storage_->tables().Positions(session_id, each);
      done(absl::IsUnavailable(status) ? StoreFailedError() : status);
    });
  }

  JournalStatus status() const override {
    JournalStatus status;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      status.full = full_;
      status.failed = failed_;
      status.commit_seconds = commit_seconds_;
    }
    status.entries = last_entry();
    status.durable = durable_entry();
    status.sessions = sessions_;
    status.bytes = bytes_;
    status.limit_bytes = storage_->max_bytes();
    status.commits = status.commit_seconds.count();
    status.tokens_written = tokens_written_;
    status.tokens_waiting = tokens_entered_ - status.tokens_written;
    return status;
  }

  void Drain(absl::Duration timeout) override {
    std::unique_lock<std::mutex> lock(mutex_);
    hurry_ = true;
    changed_.notify_all();
    const uint64_t last = last_entry();
    changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                      [&] { return failed_ || durable_entry() >= last; });
  }

 private:
  struct Waiting {
    uint64_t entry = 0;
    std::function<void(const absl::Status&)> done;
  };

  uint64_t Enter(JournalEntry entry) override {
    tokens_entered_ += TokensOf(entry);
    std::lock_guard<std::mutex> lock(mutex_);
    // Nothing is kept for a storage that will take nothing any more.
    if (!failed_) queue_.push_back(std::move(entry));
    if (queue_.size() == 1) changed_.notify_all();
    return last_entry_.fetch_add(1, std::memory_order_acq_rel) + 1;
  }

  void Read(std::function<void()> read) {
    std::lock_guard<std::mutex> lock(mutex_);
    reads_.push_back(std::move(read));
    changed_.notify_all();
  }

  void Loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      const bool idle = WaitForWork(lock);
      std::deque<std::function<void()>> reads = std::exchange(reads_, {});
      // Reads do not try a full disk again.
      const bool due = !full_ || stopping_ || Now() >= next_try_;
      if (due) hurry_ = false;
      std::move(queue_.begin(), queue_.end(), std::back_inserter(batch_));
      queue_.clear();
      const uint64_t last = last_entry();
      lock.unlock();
      if (!batch_.empty() && due) CommitBatch(last);
      for (const auto& read : reads) read();
      reads.clear();
      Tidy(idle);
      lock.lock();
      if (stopping_ && queue_.empty() && reads_.empty()) return;
    }
  }

  // Until there is something to do, but for entries that may wait. Whether
  // nobody hurried for an interval.
  bool WaitForWork(std::unique_lock<std::mutex>& lock) {
    const auto begin = Now();
    while (!stopping_ && reads_.empty() && (!hurry_ || full_)) {
      const bool work = !queue_.empty() || !batch_.empty();
      if (!work && idle_tidied_) {
        changed_.wait(lock);
        continue;
      }
      const auto wait = full_ && !hurry_ ? kFullRetry : interval_;
      if (changed_.wait_until(lock, begin + wait) == std::cv_status::timeout) {
        return queue_.empty() && batch_.empty();
      }
    }
    return false;
  }

  // The session's entries are all in the tables; "": the storage works.
  absl::Status MayRead(const std::string& session_id) const {
    if (failed_) return StoreFailedError();
    if (session_id.empty()) return absl::OkStatus();
    for (const JournalEntry& entry : batch_) {
      if (SessionOf(entry) == session_id) return StoreFullError();
    }
    return absl::OkStatus();
  }

  // batch_ stays where nothing of it was committed.
  void CommitBatch(uint64_t last) {
    idle_tidied_ = false;
    if (failed_) return Fail();
    const auto begin = std::chrono::steady_clock::now();
    const absl::Status status = storage_->Commit(batch_);
    if (status.ok()) {
      int64_t tokens = 0;
      for (const JournalEntry& entry : batch_) tokens += TokensOf(entry);
      tokens_written_ += tokens;
      batch_.clear();
      CountCommit(std::chrono::steady_clock::now() - begin);
      sessions_ = storage_->tables().sessions();
      return EndBatch(last, true, absl::OkStatus());
    }
    if (!full_) {
      Log(LogSeverity::kError, "store", {{"error", status.message()}});
    }
    if (!absl::IsResourceExhausted(status)) return Fail();
    next_try_ = Now() + interval_;
    EndBatch(last, false, StoreFullError());
  }

  void CountCommit(std::chrono::duration<double> seconds) {
    std::lock_guard<std::mutex> lock(mutex_);
    commit_seconds_.Observe(seconds.count());
  }

  void Fail() {
    storage_->MarkFailed();
    batch_.clear();
    EndBatch(0, false, StoreFailedError());
  }

  // Entries up to `last` were tried.
  void EndBatch(uint64_t last, bool durable, const absl::Status& status) {
    std::vector<Waiting> told;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      tried_ = last;
      if (durable) durable_entry_.store(last, std::memory_order_release);
      full_ = absl::IsResourceExhausted(status);
      failed_ = failed_ || absl::IsUnavailable(status);
      const auto waits = [&](const Waiting& waiting) {
        return !failed_ && waiting.entry > last;
      };
      const auto ready =
          std::stable_partition(waiting_.begin(), waiting_.end(), waits);
      std::move(ready, waiting_.end(), std::back_inserter(told));
      waiting_.erase(ready, waiting_.end());
      hurry_ = hurry_ || !waiting_.empty();
      changed_.notify_all();
    }
    for (const Waiting& waiting : told) waiting.done(status);
  }

  // `idle`: there was nothing to do for an interval.
  void Tidy(bool idle) {
    if (!failed_) {
      idle = idle && !idle_tidied_ && QueueIsEmpty();
      // Nobody knows what of the database's file the disk has then.
      if (absl::IsUnavailable(storage_->Tidy(idle))) Fail();
      idle_tidied_ = idle || idle_tidied_;
    }
    bytes_ = storage_->Bytes();
  }

  bool QueueIsEmpty() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return queue_.empty();
  }

  static std::chrono::steady_clock::time_point Now() {
    return std::chrono::steady_clock::now();
  }

  const std::chrono::nanoseconds interval_;
  // Of the thread.
  const std::unique_ptr<JournalStorage> storage_;
  std::vector<JournalEntry> batch_;
  bool idle_tidied_ = false;
  std::chrono::steady_clock::time_point next_try_;  // of a full disk

  std::atomic<uint64_t> last_entry_{0};
  std::atomic<uint64_t> durable_entry_{0};
  std::atomic<int64_t> tokens_entered_{0};
  std::atomic<int64_t> tokens_written_{0};
  std::atomic<int64_t> sessions_{0};
  std::atomic<int64_t> bytes_{0};

  // Not Abseil's, whose timeouts follow the wall clock and its jumps.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_.
  std::deque<JournalEntry> queue_;
  std::deque<std::function<void()>> reads_;
  std::vector<Waiting> waiting_;
  Histogram commit_seconds_{kCommitBounds};
  uint64_t tried_ = 0;  // the last entry that a commit was tried with
  bool hurry_ = false;
  bool full_ = false;
  bool failed_ = false;
  bool stopping_ = false;
  std::thread thread_;  // last
};

}  // namespace

absl::StatusOr<std::unique_ptr<SessionJournal>> OpenSqliteJournal(
    const SqliteJournalOptions& options) {
  TXL_ASSIGN_OR_RETURN(std::unique_ptr<JournalStorage> storage,
                       JournalStorage::Open(options));
  return std::make_unique<SqliteJournal>(options.interval, std::move(storage));
}

}  // namespace txl
