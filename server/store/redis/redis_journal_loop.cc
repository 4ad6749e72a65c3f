// RedisJournal: its thread.

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "server/base/log.h"
#include "server/store/redis/redis_journal_impl.h"

namespace txl {
namespace {

using Clock = std::chrono::steady_clock;

// Between attempts of a storage that does not answer, or has no room.
constexpr auto kRetry = std::chrono::milliseconds(100);
// Claims and sessions are looked after so often.
constexpr auto kTick = std::chrono::seconds(1);
// Refusals that nobody asked for.
constexpr size_t kMostRefusals = 10'000;

}  // namespace

void RedisJournal::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    WaitForWork(lock);
    const bool ends = stopping_;
    std::vector<RedisItem> items = TakeItems();
    std::vector<std::function<void()>> reads;
    if (queue_.empty()) reads.swap(reads_);
    lock.unlock();
    const auto begin = Clock::now();
    sender_.Add(std::move(items));
    const RedisPass pass = sender_.Send();
    EndPass(pass, sent_, begin);
    for (const auto& read : reads) read();
    reads.clear();
    if (Clock::now() >= next_tick_) Tick();
    lock.lock();
    // What the storage does not take now stays with it or is lost.
    if (ends && queue_.empty() && reads_.empty()) return;
  }
}

void RedisJournal::WaitForWork(std::unique_lock<std::mutex>& lock) {
  const auto begin = Clock::now();
  while (!stopping_) {
    const auto due = retries_         ? begin + kRetry
                     : queue_.empty() ? next_tick_
                                      : std::min(begin + interval_, next_tick_);
    if (hurry_ && !retries_) return;
    if (retries_ && hurry_ && !reads_.empty()) return;
    if (changed_.wait_until(lock, due) == std::cv_status::timeout) return;
  }
}

std::vector<RedisItem> RedisJournal::TakeItems() {
  hurry_ = false;
  std::vector<RedisItem> items;
  // They read what those before them have done.
  const auto reads = [](const RedisItem& item) {
    return item.entry.has_value() &&
           (std::holds_alternative<ForkEntry>(*item.entry) ||
            std::holds_alternative<RewindEntry>(*item.entry));
  };
  auto end = queue_.end();
  if (!queue_.empty()) {
    end = std::find_if(queue_.begin() + 1, queue_.end(), reads);
    if (reads(queue_.front()) && retries_) return items;
  }
  std::move(queue_.begin(), end, std::back_inserter(items));
  queue_.erase(queue_.begin(), end);
  if (queue_.empty()) {
    sent_ = last_entry_;
    sent_tokens_ = tokens_entered_;
  } else {
    hurry_ = true;
  }
  return items;
}

void RedisJournal::EndPass(const RedisPass& pass, uint64_t last,
                           std::chrono::steady_clock::time_point begin) {
  for (const RedisPass::Refused& refused : pass.refused) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (refusals_.size() >= kMostRefusals) refusals_.clear();
      if (refused.answers) refusals_[refused.session_id] = refused.status;
    }
    TellMoved(refused.session_id, refused.claim);
  }
  if (pass.asked || !pass.error.ok()) Heard(pass.error);
  std::multimap<uint64_t, std::function<void(const absl::Status&)>> told;
  absl::Status status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    counted_.tokens_lost += pass.tokens_lost;
    retries_ = !pass.done;
    full_ = pass.full;
    tried_ = last;
    if (pass.done && last > durable_entry()) {
      durable_entry_.store(last, std::memory_order_release);
      counted_.tokens_written = sent_tokens_;
      const std::chrono::duration<double> took = Clock::now() - begin;
      counted_.commit_seconds.Observe(took.count());
    }
    if (full_) status = StoreFullError();
    const uint64_t up_to = full_ ? tried_ : durable_entry();
    const auto end = told_.upper_bound(up_to);
    while (told_.begin() != end) told.insert(told_.extract(told_.begin()));
    hurry_ = hurry_ || !told_.empty();
    changed_.notify_all();
  }
  for (const auto& [entry, done] : told) {
    done(entry <= durable_entry() ? absl::OkStatus() : status);
  }
}

void RedisJournal::Heard(const absl::Status& status) {
  const bool was_silent = silent_since_ != 0;
  if (status.ok()) {
    silent_since_ = 0;
  } else if (!was_silent) {
    silent_since_ = absl::ToInt64Nanoseconds(BootTime());
  }
  if (was_silent == !status.ok()) return;
  Log(status.ok() ? LogSeverity::kInfo : LogSeverity::kError, "store",
      {{"answers", status.ok()}, {"error", status.message()}});
}

void RedisJournal::TellMoved(const std::string& session_id,
                             const std::shared_ptr<SessionClaim>& claim) {
  std::function<void(const std::string&, const std::shared_ptr<SessionClaim>&)>
      moved;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++counted_.fenced;
    moved = moved_;
  }
  if (moved) moved(session_id, claim);
}

// What it sends goes out with the next pass.
void RedisJournal::Tick() {
  next_tick_ = Clock::now() + kTick;
  const absl::StatusOr<int64_t> sessions = CountSessions(*shard_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (sessions.ok()) counted_.sessions = *sessions;
  }
  if (!sessions.ok() || sender_.empty()) Heard(sessions.status());
  for (const RedisSender::Owned& owned : sender_.Due(absl::FromChrono(kTick))) {
    Touch(owned.session_id, owned.claim);
  }
}

void RedisJournal::Touch(const std::string& session_id,
                         const std::shared_ptr<SessionClaim>& claim) {
  RedisItem item;
  item.session_id = session_id;
  const auto sent = std::make_shared<absl::Duration>();
  item.make = [this, session_id, claim, sent] {
    *sent = BootTime();
    return claim->version.owned && !claim->moved()
               ? TouchCall(caller_, session_id, *claim)
               : RedisCommand();
  };
  item.answered = [this, session_id, claim, sent](const RedisAnswer& answer) {
    if (!answer.ok() || answer->empty()) return;
    if ((*answer)[0] == "OK") {
      claim->confirmed = absl::ToInt64Nanoseconds(*sent);
      return;
    }
    if (claim->moved()) return;
    int64_t position = 0;
    if (answer->size() > 1) (void)absl::SimpleAtoi((*answer)[1], &position);
    claim->moved_to = (*answer)[0] == "GONE" ? SessionClaim::kGone : position;
    claim->version.owned = false;
    TellMoved(session_id, claim);
  };
  Ask(std::move(item));
}

}  // namespace txl
