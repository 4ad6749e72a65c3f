#include "server/store/redis/redis_journal.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/random_bits.h"
#include "server/store/redis/redis_journal_impl.h"
#include "server/store/redis/sharded_journal.h"

namespace txl {
namespace {

std::string Random() {
  return absl::StrCat(absl::Hex(RandomBits(), absl::kZeroPad16),
                      absl::Hex(RandomBits(), absl::kZeroPad16));
}

}  // namespace

RedisJournal::RedisJournal(const RedisJournalOptions& options,
                           std::unique_ptr<RedisShard> shard)
    : interval_(absl::ToChronoNanoseconds(options.interval)),
      caller_{options.fingerprint, options.vocab_size, Random(), options.lease},
      shard_(std::move(shard)),
      sender_(caller_, shard_.get(), options.kept) {
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

void RedisJournal::Acquire(const std::string& session_id,
                           const TurnIdentity& identity,
                           std::shared_ptr<SessionClaim> held, Done done) {
  RedisItem item;
  item.session_id = session_id;
  const auto sent = std::make_shared<absl::Duration>();
  item.make = [this, session_id, identity, held, sent, nonce = Random()] {
    *sent = BootTime();
    return AcquireCall(caller_, session_id, identity, nonce, held.get());
  };
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

uint64_t RedisJournal::Enter(JournalEntry entry) {
  const int64_t tokens = TokensOf(entry);
  std::lock_guard<std::mutex> lock(mutex_);
  tokens_entered_ += tokens;
  queued_tokens_ += tokens;
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
    Push(std::move(item));
  }
  changed_.notify_all();
  return ++last_entry_;
}

void RedisJournal::Ask(RedisItem item) {
  std::lock_guard<std::mutex> lock(mutex_);
  Push(std::move(item));
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

absl::StatusOr<OpenedRedisJournal> OpenRedisJournal(
    const RedisJournalOptions& options) {
  OpenedRedisJournal opened;
  std::vector<std::unique_ptr<SharedJournal>> journals;
  for (const RedisAddress& address : options.shards) {
    auto shard = std::make_unique<RedisShard>(address, options.timeout);
    TXL_RETURN_IF_ERROR(shard->Check());
    opened.late = opened.late || shard->late();
    journals.push_back(
        std::make_unique<RedisJournal>(options, std::move(shard)));
  }
  opened.journal = journals.size() == 1
                       ? std::move(journals[0])
                       : std::make_unique<ShardedJournal>(std::move(journals));
  return opened;
}

}  // namespace txl
