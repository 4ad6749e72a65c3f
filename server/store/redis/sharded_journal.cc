#include "server/store/redis/sharded_journal.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "server/base/boot_time.h"
#include "server/session/session_name.h"
#include "server/store/redis/redis_address.h"
#include "server/store/redis/redis_calls.h"

namespace txl {
namespace {

template <typename Answer>
using Told = std::function<void(Answer)>;

// What to give every part: `done` gets the answers of all, in any order, on the
// thread of the last.
template <typename Answer>
Told<Answer> Gather(size_t parts, Told<std::vector<Answer>> done) {
  struct Answers {
    std::mutex mutex;
    std::vector<Answer> all;  // under mutex
  };
  return [parts, done = std::move(done),
          answers = std::make_shared<Answers>()](Answer answer) {
    std::vector<Answer> all;
    {
      const std::lock_guard<std::mutex> lock(answers->mutex);
      answers->all.push_back(std::move(answer));
      if (answers->all.size() < parts) return;
      all = std::move(answers->all);
    }
    done(std::move(all));
  };
}

absl::Status FirstError(const std::vector<absl::Status>& all) {
  for (const absl::Status& status : all) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

template <typename Item>
using Lists = std::vector<absl::StatusOr<std::vector<Item>>>;

// Those of lists that are there, and the error of one that is not.
template <typename Item>
std::pair<std::vector<Item>, absl::Status> Joined(Lists<Item> lists) {
  std::vector<Item> joined;
  absl::Status status;
  for (absl::StatusOr<std::vector<Item>>& list : lists) {
    if (!list.ok()) {
      status = list.status();
      continue;
    }
    std::move(list->begin(), list->end(), std::back_inserter(joined));
  }
  return {std::move(joined), status};
}

template <typename Item>
void Shorten(int64_t count, std::vector<Item>& items) {
  const auto most = static_cast<size_t>(count);
  if (items.size() > most) items.resize(most);
}

bool ComesFirst(const StoredInfo& a, const StoredInfo& b) {
  return SessionName::OfText(a.head.session_id) <
         SessionName::OfText(b.head.session_id);
}

void Add(const JournalStatus& part, JournalStatus& sum) {
  sum.entries += part.entries;
  sum.durable += part.durable;
  sum.sessions += part.sessions;
  sum.bytes += part.bytes;
  sum.limit_bytes += part.limit_bytes;
  sum.commits += part.commits;
  sum.commit_seconds.Add(part.commit_seconds);
  sum.tokens_written += part.tokens_written;
  sum.tokens_waiting += part.tokens_waiting;
  sum.acquired += part.acquired;
  sum.taken_over += part.taken_over;
  sum.fenced += part.fenced;
  sum.busy += part.busy;
  sum.tokens_lost += part.tokens_lost;
  sum.full = sum.full || part.full;
  sum.failed = sum.failed || part.failed;
}

}  // namespace

SharedJournal& ShardedJournal::PartOf(const std::string& session_id) const {
  return *parts_[ShardOf(RedisNameOf(session_id), parts_.size())];
}

uint64_t ShardedJournal::last_entry() const { return status().entries; }

uint64_t ShardedJournal::durable_entry() const { return status().durable; }

void ShardedJournal::WhenDurable(
    uint64_t /*entry*/, std::function<void(const absl::Status&)> done) {
  const Told<absl::Status> each = Gather<absl::Status>(
      parts_.size(),
      [done = std::move(done)](const std::vector<absl::Status>& all) {
        done(FirstError(all));
      });
  for (const auto& part : parts_) part->WhenDurable(part->last_entry(), each);
}

void ShardedJournal::OnMoved(
    std::function<void(const std::string& session_id,
                       const std::shared_ptr<SessionClaim>& claim)>
        moved) {
  for (const auto& part : parts_) part->OnMoved(moved);
}

void ShardedJournal::List(
    const std::string& after, int64_t count,
    std::function<void(absl::StatusOr<std::vector<StoredInfo>>)> done) {
  using Answer = absl::StatusOr<std::vector<StoredInfo>>;
  const Told<Answer> each = Gather<Answer>(
      parts_.size(), [count, done = std::move(done)](Lists<StoredInfo> lists) {
        auto [page, status] = Joined<StoredInfo>(std::move(lists));
        if (!status.ok()) return done(status);
        std::sort(page.begin(), page.end(), ComesFirst);
        Shorten(count, page);
        done(std::move(page));
      });
  for (const auto& part : parts_) part->List(after, count, each);
}

void ShardedJournal::ListExpired(
    absl::Time now, int64_t count,
    std::function<void(absl::StatusOr<std::vector<StoredPosition>>)> done) {
  using Answer = absl::StatusOr<std::vector<StoredPosition>>;
  const Told<Answer> each = Gather<Answer>(
      parts_.size(),
      [count, done = std::move(done)](Lists<StoredPosition> lists) {
        auto [expired, status] = Joined<StoredPosition>(std::move(lists));
        if (expired.empty() && !status.ok()) return done(status);
        Shorten(count, expired);
        done(std::move(expired));
      });
  for (const auto& part : parts_) part->ListExpired(now, count, each);
}

void ShardedJournal::Positions(const std::string& session_id,
                               std::function<void(const StoredPosition&)> each,
                               std::function<void(const absl::Status&)> done) {
  if (!session_id.empty()) {
    return PartOf(session_id)
        .Positions(session_id, std::move(each), std::move(done));
  }
  const auto one_by_one =
      [each = std::move(each),
       mutex = std::make_shared<std::mutex>()](const StoredPosition& position) {
        const std::lock_guard<std::mutex> lock(*mutex);
        each(position);
      };
  const Told<absl::Status> all = Gather<absl::Status>(
      parts_.size(),
      [done = std::move(done)](const std::vector<absl::Status>& statuses) {
        done(FirstError(statuses));
      });
  for (const auto& part : parts_) part->Positions("", one_by_one, all);
}

absl::Duration ShardedJournal::Silent() const {
  absl::Duration shortest = absl::InfiniteDuration();
  for (const auto& part : parts_) {
    shortest = std::min(shortest, part->Silent());
  }
  return shortest;
}

absl::Duration ShardedJournal::LongestSilence() const {
  absl::Duration longest;
  for (const auto& part : parts_) longest = std::max(longest, part->Silent());
  return longest;
}

JournalStatus ShardedJournal::status() const {
  JournalStatus sum;
  for (const auto& part : parts_) Add(part->status(), sum);
  return sum;
}

void ShardedJournal::Drain(absl::Duration timeout) {
  const absl::Duration end = BootTime() + timeout;
  for (const auto& part : parts_) {
    part->Drain(std::max(end - BootTime(), absl::ZeroDuration()));
  }
}

}  // namespace txl
