#include "server/store/redis/redis_journal.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "model/base/status_macros.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/store/database.h"

namespace txl {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Between attempts of a storage that does not answer, or has no room.
constexpr auto kRetry = std::chrono::milliseconds(100);
// Claims and sessions are looked after so often.
constexpr auto kTick = std::chrono::seconds(1);
// Refusals that nobody asked for.
constexpr size_t kMostRefusals = 10'000;
// Names that are asked for at a time.
constexpr int64_t kAtOnce = 1000;

absl::StatusOr<std::vector<std::string>> AskNow(RedisLink& link,
                                                const RedisCommand& command) {
  RedisAnswer answer = link.CallOne(command);
  if (!answer.ok()) return StoreFailedError();
  return answer;
}

absl::StatusOr<std::vector<StoredInfo>> ListSessions(RedisLink& link,
                                                     const std::string& after,
                                                     int64_t count) {
  TXL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                       AskNow(link, ListCall(after, count)));
  return ReadList(words);
}

absl::StatusOr<std::vector<StoredPosition>> ListExpiredSessions(RedisLink& link,
                                                                absl::Time now,
                                                                int64_t count) {
  TXL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                       AskNow(link, ExpiredCall(now, count)));
  return ReadExpired(words);
}

absl::Status TellPositions(
    RedisLink& link, const std::string& session_id,
    const std::function<void(const StoredPosition&)>& each) {
  if (!session_id.empty()) {
    TXL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                         AskNow(link, LoadCall(session_id, nullptr)));
    int64_t position = 0;
    if (words.size() > 3 && absl::SimpleAtoi(words[3], &position)) {
      each({session_id, position});
    }
    return absl::OkStatus();
  }
  std::string after;
  while (true) {
    TXL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                         AskNow(link, NextNamesCall(after, kAtOnce)));
    const std::vector<StoredInfo> some = ReadList(words);
    for (const StoredInfo& info : some) {
      each({info.head.session_id, info.position});
    }
    if (static_cast<int64_t>(some.size()) < kAtOnce) return absl::OkStatus();
    after = RedisNameOf(some.back().head.session_id);
  }
}

absl::StatusOr<int64_t> CountSessions(RedisLink& link) {
  TXL_ASSIGN_OR_RETURN(const std::vector<std::string> words,
                       AskNow(link, {"ZCARD", "txl:ids"}));
  int64_t count = 0;
  if (!words.empty()) (void)absl::SimpleAtoi(words[0], &count);
  return count;
}

// Marks the claim as moved if the read shows another owner. Missing ids alone
// do not count: they may be sent again. Returns whether this server owned it.
bool MarkIfMoved(const absl::StatusOr<SharedSession>& found,
                 SessionClaim& held) {
  const bool gone = absl::IsNotFound(found.status());
  const bool other = found.ok() && found->stored.has_value();
  if (held.moved() || (!gone && !other)) return false;
  int64_t moved_to = SessionClaim::kGone;
  if (other) {
    const SessionClaim::Version& now = found->claim->version;
    if (now.epoch == held.version.epoch && now.nonce == held.version.nonce) {
      return false;
    }
    moved_to = now.position;
  }
  held.moved_to.store(moved_to, std::memory_order_release);
  return std::exchange(held.version.owned, false);
}

RedisItem Asked(const std::string& session_id,
                std::function<RedisCommand()> make) {
  RedisItem item;
  item.session_id = session_id;
  item.make = std::move(make);
  return item;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RedisJournal>> RedisJournal::Open(
    const RedisJournalOptions& options) {
  RedisLink link(options.address, options.timeout);
  TXL_RETURN_IF_ERROR(link.Check());
  return std::unique_ptr<RedisJournal>(
      new RedisJournal(options, std::move(link)));
}

RedisJournal::RedisJournal(const RedisJournalOptions& options, RedisLink link)
    : interval_(absl::ToChronoNanoseconds(options.interval)),
      caller_{options.fingerprint, options.vocab_size, NewNonce(),
              options.lease},
      link_(std::move(link)),
      sender_(caller_, &link_, options.kept) {
  thread_ = std::thread([this] { Loop(); });
}

RedisJournal::~RedisJournal() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

uint64_t RedisJournal::Expire(const std::string& session_id, absl::Time now,
                              std::function<void()> removed) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<SessionClaim> claim = HeldClaim(session_id);
  RedisItem item = Asked(session_id, [session_id, claim, now] {
    return ExpireCall(session_id, claim.get(), now);
  });
  item.answered = [removed = std::move(removed)](const RedisAnswer& answer) {
    if (answer.ok() && !answer->empty() && (*answer)[0] == "OK") removed();
  };
  queue_.push_back(std::move(item));
  return ++last_entry_;
}

void RedisJournal::WhenDurable(uint64_t entry,
                               std::function<void(const absl::Status&)> done) {
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

void RedisJournal::Hold(const std::string& session_id,
                        std::shared_ptr<SessionClaim> claim) {
  std::lock_guard<std::mutex> lock(mutex_);
  held_[session_id] = std::move(claim);
}

void RedisJournal::Drop(const std::string& session_id,
                        const std::shared_ptr<SessionClaim>& claim) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = held_.find(session_id);
  if (found != held_.end() && found->second == claim) held_.erase(found);
}

void RedisJournal::Load(
    const std::string& session_id,
    std::function<void(absl::StatusOr<StoredSession>)> done) {
  Refresh(session_id, nullptr,
          [done = std::move(done)](absl::StatusOr<SharedSession> found) {
            if (!found.ok()) return done(found.status());
            done(*std::move(found->stored));
          });
}

void RedisJournal::Refresh(const std::string& session_id,
                           std::shared_ptr<SessionClaim> held, Done done) {
  RedisItem item = Asked(session_id, [session_id, held] {
    return LoadCall(session_id, held.get());
  });
  item.answered = [this, session_id, held,
                   done = std::move(done)](const RedisAnswer& answer) {
    absl::StatusOr<SharedSession> found =
        ReadShared(caller_, session_id, held, answer);
    if (held != nullptr && MarkIfMoved(found, *held)) {
      std::lock_guard<std::mutex> lock(mutex_);
      ++counted_.fenced;
    }
    done(std::move(found));
  };
  Ask(std::move(item));
}

void RedisJournal::Acquire(const std::string& session_id,
                           const TurnIdentity& identity,
                           std::shared_ptr<SessionClaim> held, Done done) {
  const auto sent = std::make_shared<absl::Duration>();
  RedisItem item = Asked(
      session_id, [this, session_id, identity, held, sent, nonce = NewNonce()] {
        *sent = BootTime();
        return AcquireCall(caller_, session_id, identity, nonce, held.get());
      });
  item.answered = [this, session_id, held, sent,
                   done = std::move(done)](const RedisAnswer& answer) {
    absl::StatusOr<SharedSession> found =
        ReadShared(caller_, session_id, held, answer);
    if (found.ok()) sender_.Own(session_id, found->claim, *sent);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (found.ok()) {
        ++counted_.acquired;
        if (BusyOf(*answer) > 0) ++counted_.taken_over;
      } else if (absl::IsAborted(found.status())) {
        ++counted_.busy;
      }
    }
    done(std::move(found));
  };
  Ask(std::move(item));
}

void RedisJournal::Release(const std::string& session_id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::shared_ptr<SessionClaim> claim = HeldClaim(session_id);
  if (claim == nullptr) return;
  queue_.push_back(Asked(session_id, [session_id, claim] {
    return claim->version.owned ? ReleaseCall(session_id, *claim)
                                : RedisCommand();
  }));
  hurry_ = true;
  changed_.notify_all();
}

absl::Status RedisJournal::TakeRefusal(const std::string& session_id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = refusals_.find(session_id);
  if (found == refusals_.end()) return absl::OkStatus();
  absl::Status status = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) refusals_.erase(found);
  return status;
}

void RedisJournal::OnMoved(
    std::function<void(const std::string& session_id,
                       const std::shared_ptr<SessionClaim>& claim)>
        moved) {
  std::lock_guard<std::mutex> lock(mutex_);
  moved_ = std::move(moved);
}

absl::Duration RedisJournal::Silent() const {
  const int64_t since = silent_since_;
  return since == 0 ? absl::ZeroDuration()
                    : BootTime() - absl::Nanoseconds(since);
}

void RedisJournal::List(
    const std::string& after, int64_t count,
    std::function<void(absl::StatusOr<std::vector<StoredInfo>>)> done) {
  Direct([this, after, count, done = std::move(done)] {
    done(ListSessions(link_, after, count));
  });
}

void RedisJournal::ListExpired(
    absl::Time now, int64_t count,
    std::function<void(absl::StatusOr<std::vector<StoredPosition>>)> done) {
  Direct([this, now, count, done = std::move(done)] {
    done(ListExpiredSessions(link_, now, count));
  });
}

void RedisJournal::Positions(const std::string& session_id,
                             std::function<void(const StoredPosition&)> each,
                             std::function<void(const absl::Status&)> done) {
  Direct([this, session_id, each = std::move(each), done = std::move(done)] {
    done(TellPositions(link_, session_id, each));
  });
}

JournalStatus RedisJournal::status() const {
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

void RedisJournal::Drain(absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t last = last_entry();
  hurry_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                    [&] { return durable_entry() >= last && queue_.empty(); });
}

uint64_t RedisJournal::Enter(JournalEntry entry) {
  const int64_t tokens = TokensOf(entry);
  std::lock_guard<std::mutex> lock(mutex_);
  tokens_entered_ += tokens;
  RedisItem item;
  item.session_id = SessionOf(entry);
  item.claim = HeldClaim(item.session_id);
  const bool makes = std::holds_alternative<CreateEntry>(entry) ||
                     std::holds_alternative<ForkEntry>(entry);
  const bool removes = std::holds_alternative<RemoveEntry>(entry);
  if (item.claim == nullptr && (makes || removes)) {
    item.claim = std::make_shared<SessionClaim>();
    if (makes) held_[item.session_id] = item.claim;
  }
  if (item.claim != nullptr) {  // else it is of no session
    item.entry = std::move(entry);
    queue_.push_back(std::move(item));
  }
  changed_.notify_all();
  return ++last_entry_;
}

void RedisJournal::Ask(RedisItem item) {
  std::lock_guard<std::mutex> lock(mutex_);
  queue_.push_back(std::move(item));
  hurry_ = true;
  changed_.notify_all();
}

void RedisJournal::Direct(std::function<void()> read) {
  std::lock_guard<std::mutex> lock(mutex_);
  reads_.push_back(std::move(read));
  hurry_ = true;
  changed_.notify_all();
}

std::shared_ptr<SessionClaim> RedisJournal::HeldClaim(
    const std::string& session_id) const {
  const auto found = held_.find(session_id);
  return found == held_.end() ? nullptr : found->second;
}

void RedisJournal::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    WaitForWork(lock);
    const bool ends = stopping_;
    std::vector<RedisItem> items = TakeItems();
    std::vector<std::function<void()>> reads;
    if (queue_.empty()) reads.swap(reads_);
    lock.unlock();
    const auto begin = SteadyClock::now();
    sender_.Add(std::move(items));
    const RedisPass pass = sender_.Send();
    EndPass(pass, sent_, begin);
    for (const auto& read : reads) read();
    reads.clear();
    if (SteadyClock::now() >= next_tick_) Tick();
    lock.lock();
    // What the storage does not take now stays with it or is lost.
    if (ends && queue_.empty() && reads_.empty()) return;
  }
}

void RedisJournal::WaitForWork(std::unique_lock<std::mutex>& lock) {
  const auto begin = SteadyClock::now();
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
      if (refused.answers) {
        refusals_[refused.session_id].push_back(refused.status);
      }
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
      const std::chrono::duration<double> took = SteadyClock::now() - begin;
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
  next_tick_ = SteadyClock::now() + kTick;
  const absl::StatusOr<int64_t> sessions = CountSessions(link_);
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
  const auto sent = std::make_shared<absl::Duration>();
  RedisItem item = Asked(session_id, [this, session_id, claim, sent] {
    *sent = BootTime();
    return claim->version.owned && !claim->moved()
               ? TouchCall(caller_, session_id, *claim)
               : RedisCommand();
  });
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
