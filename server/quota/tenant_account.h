#pragma once

// What one tenant has taken of its quotas, and what it may still take.

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace txl {

// A bucket of tokens that refills at a steady rate: what a quota of so many a
// second or a minute lets through. Time is given in.

// Not thread-safe. Times do not go back; an earlier one counts as the last.
class TokenBucket {
 public:
  // Full at `now`. At most `limit` >= 1 tokens at once, and `limit` for each
  // `period` from then on.
  TokenBucket(int64_t limit, absl::Duration period, absl::Duration now);

  // Another limit: what is in it stays, as far as it fits.
  void SetLimit(int64_t limit, absl::Duration now);

  // Whole tokens that are in it.
  int64_t Available(absl::Duration now);
  // Takes `count` tokens where they are there.
  bool Take(int64_t count, absl::Duration now);
  // Taken tokens were not used.
  void GiveBack(int64_t count);
  // When `count` tokens will be there if none is taken; nothing: never, for
  // they are more than `limit`.
  std::optional<absl::Duration> ReadyAt(int64_t count, absl::Duration now);

 private:
  void Refill(absl::Duration now);

  int64_t limit_;
  const absl::Duration period_;
  double level_;
  absl::Duration refilled_;
};

// What a tenant may take of the server, as the file of --tenants says it.

// Absent: no limit of its own.
struct TenantLimits {
  // Its share where tenants want more than there is, beside other weights.
  double weight = 1;
  std::optional<int64_t> turns;  // at a time, waiting ones included
  // SessionLimits (server/session/session_quota.h).
  std::optional<int64_t> sessions;
  std::optional<int64_t> bytes;
  std::optional<int64_t> tokens_in_per_minute;  // of prompts
  // Whether that counts prompt tokens of the prefix cache, too.
  bool count_cached_tokens = false;
  std::optional<int64_t> tokens_out_per_minute;  // handed to streams
  std::optional<int64_t> calls_per_second;
  std::optional<absl::Duration> longest_turn;  // its wait included
};

// What a tenant may take, and what it has taken at one moment.
struct TenantUse {
  std::string tenant;
  TenantLimits limits;
  int64_t turns = 0;
  // Not refilled yet; nothing where there is no limit.
  std::optional<int64_t> calls;
  std::optional<int64_t> tokens_in;
  std::optional<int64_t> tokens_out;
};

// Thread-safe. Times are Clock::Monotonic. Errors: RESOURCE_EXHAUSTED QUOTA,
// with the quota's name as `quota` in the metadata and, where it will fit, when
// (RetryInfo); what was refused has taken nothing.
class TenantAccount {
 public:
  // `counts`: its place in the snapshot's counters (metrics.h); negative: none.
  TenantAccount(std::string name, const TenantLimits& limits, int32_t counts,
                absl::Duration now);

  const std::string& name() const { return name_; }
  int32_t counts() const { return counts_.load(std::memory_order_relaxed); }
  // From now on; what was counted elsewhere stays there.
  void CountAt(int32_t counts) {
    counts_.store(counts, std::memory_order_relaxed);
  }
  TenantLimits limits() const ABSL_LOCKS_EXCLUDED(mutex_);
  double weight() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Infinite where it has no limit of its own. A turn over it ends with
  // TurnOverQuota.
  absl::Duration longest_turn() const ABSL_LOCKS_EXCLUDED(mutex_);

  TenantUse Use(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  // What it has taken stays taken.
  void SetLimits(const TenantLimits& limits, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Quota calls_per_second.
  absl::Status AdmitCall(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Quotas turns and tokens_in_per_minute. OK: EndTurn is due. A turn that did
  // not come to run gives its tokens back; another one names those that were
  // `cached`, and the limits of that moment say whether they come back.
  absl::Status StartTurn(int64_t tokens_in, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void EndTurn(int64_t tokens_back = 0, int64_t cached = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Quota tokens_out_per_minute. Tokens that may be sampled now; each is taken
  // before it is, and given back where its stream did not get it, so that 64
  // turns at a time get no token more than one would.
  int64_t TokensOut(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);
  void TakeTokensOut(int64_t count, absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveBackTokensOut(int64_t count) ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing while one may be sampled; else when the next one may.
  std::optional<absl::Duration> PausedUntil(absl::Duration now)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void MakeBucket(const std::optional<int64_t>& limit, absl::Duration period,
                  absl::Duration now, std::optional<TokenBucket>& bucket)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string name_;
  std::atomic<int32_t> counts_;
  mutable absl::Mutex mutex_;
  TenantLimits limits_ ABSL_GUARDED_BY(mutex_);
  // Nothing where there is no limit.
  std::optional<TokenBucket> calls_ ABSL_GUARDED_BY(mutex_);
  std::optional<TokenBucket> tokens_in_ ABSL_GUARDED_BY(mutex_);
  std::optional<TokenBucket> tokens_out_ ABSL_GUARDED_BY(mutex_);
  int64_t turns_ ABSL_GUARDED_BY(mutex_) = 0;
};

// QUOTA longest_turn.
absl::Status TurnOverQuota(absl::Duration longest_turn);

}  // namespace txl
