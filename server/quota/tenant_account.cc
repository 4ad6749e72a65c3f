#include "server/quota/tenant_account.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace txl {
namespace {

// Of quotas that no clock refills: they fit again when something ends.
constexpr absl::Duration kRetry = absl::Seconds(1);
constexpr absl::Duration kLeastRetry = absl::Milliseconds(1);

template <typename Limit>
absl::Status OverQuota(absl::string_view quota, const Limit& limit,
                       std::optional<absl::Duration> retry) {
  ErrorDetails details;
  details.retry = retry;
  return QuotaError(quota, absl::StrCat(limit), std::move(details));
}

// Takes `count` tokens, where there is a limit.
absl::Status TakeFrom(std::optional<TokenBucket>& bucket,
                      absl::string_view quota,
                      const std::optional<int64_t>& limit, int64_t count,
                      absl::Duration now) {
  if (!bucket.has_value() || bucket->Take(count, now)) return absl::OkStatus();
  std::optional<absl::Duration> retry = bucket->ReadyAt(count, now);
  if (retry.has_value()) retry = std::max(*retry - now, kLeastRetry);
  return OverQuota(quota, *limit, retry);
}

std::optional<int64_t> TakenOf(std::optional<TokenBucket>& bucket,
                               const std::optional<int64_t>& limit,
                               absl::Duration now) {
  if (!bucket.has_value()) return std::nullopt;
  return *limit - bucket->Available(now);
}

bool Over(const std::optional<int64_t>& limit, int64_t used) {
  return limit.has_value() && used > *limit;
}

}  // namespace

TenantAccount::TenantAccount(std::string name, const TenantLimits& limits,
                             int32_t counts, absl::Duration now)
    : name_(std::move(name)), counts_(counts) {
  SetLimits(limits, now);
}

TenantLimits TenantAccount::limits() const {
  absl::MutexLock lock(&mutex_);
  return limits_;
}

double TenantAccount::weight() const {
  absl::MutexLock lock(&mutex_);
  return limits_.weight;
}

absl::Duration TenantAccount::longest_turn() const {
  absl::MutexLock lock(&mutex_);
  return limits_.longest_turn.value_or(absl::InfiniteDuration());
}

TenantUse TenantAccount::Use(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  TenantUse use;
  use.tenant = name_;
  use.limits = limits_;
  use.turns = turns_;
  use.calls = TakenOf(calls_, limits_.calls_per_second, now);
  use.tokens_in = TakenOf(tokens_in_, limits_.tokens_in_per_minute, now);
  use.tokens_out = TakenOf(tokens_out_, limits_.tokens_out_per_minute, now);
  return use;
}

void TenantAccount::SetLimits(const TenantLimits& limits, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  limits_ = limits;
  MakeBucket(limits.calls_per_second, absl::Seconds(1), now, calls_);
  MakeBucket(limits.tokens_in_per_minute, absl::Minutes(1), now, tokens_in_);
  MakeBucket(limits.tokens_out_per_minute, absl::Minutes(1), now, tokens_out_);
}

void TenantAccount::MakeBucket(const std::optional<int64_t>& limit,
                               absl::Duration period, absl::Duration now,
                               std::optional<TokenBucket>& bucket) {
  if (!limit.has_value()) {
    bucket.reset();
  } else if (bucket.has_value()) {
    bucket->SetLimit(*limit, now);
  } else {
    bucket.emplace(*limit, period, now);
  }
}

absl::Status TenantAccount::AdmitCall(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  return TakeFrom(calls_, "calls_per_second", limits_.calls_per_second, 1, now);
}

absl::Status TenantAccount::StartTurn(int64_t tokens_in, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  if (Over(limits_.turns, turns_ + 1)) {
    return OverQuota("turns", *limits_.turns, kRetry);
  }
  absl::Status status = TakeFrom(tokens_in_, "tokens_in_per_minute",
                                 limits_.tokens_in_per_minute, tokens_in, now);
  if (status.ok()) ++turns_;
  return status;
}

void TenantAccount::EndTurn(int64_t tokens_back, int64_t cached) {
  absl::MutexLock lock(&mutex_);
  --turns_;
  if (!limits_.count_cached_tokens) tokens_back += cached;
  if (tokens_in_.has_value()) tokens_in_->GiveBack(tokens_back);
}

int64_t TenantAccount::TokensOut(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  return tokens_out_.has_value() ? tokens_out_->Available(now)
                                 : std::numeric_limits<int64_t>::max();
}

void TenantAccount::TakeTokensOut(int64_t count, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  if (tokens_out_.has_value()) tokens_out_->Take(count, now);
}

void TenantAccount::GiveBackTokensOut(int64_t count) {
  absl::MutexLock lock(&mutex_);
  if (tokens_out_.has_value()) tokens_out_->GiveBack(count);
}

std::optional<absl::Duration> TenantAccount::PausedUntil(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  if (!tokens_out_.has_value() || tokens_out_->Available(now) > 0) {
    return std::nullopt;
  }
  return tokens_out_->ReadyAt(1, now);
}

absl::Status TurnOverQuota(absl::Duration longest_turn) {
  return OverQuota("longest_turn", absl::FormatDuration(longest_turn), kRetry);
}

namespace {

// What adding up refills may lose of a token.
constexpr double kRounding = 1e-6;

}  // namespace

TokenBucket::TokenBucket(int64_t limit, absl::Duration period,
                         absl::Duration now)
    : limit_(limit),
      period_(period),
      level_(static_cast<double>(limit)),
      refilled_(now) {}

void TokenBucket::SetLimit(int64_t limit, absl::Duration now) {
  Refill(now);
  limit_ = limit;
  level_ = std::min(level_, static_cast<double>(limit_));
}

int64_t TokenBucket::Available(absl::Duration now) {
  Refill(now);
  return static_cast<int64_t>(level_ + kRounding);
}

bool TokenBucket::Take(int64_t count, absl::Duration now) {
  if (Available(now) < count) return false;
  level_ -= static_cast<double>(count);
  return true;
}

void TokenBucket::GiveBack(int64_t count) {
  level_ = std::min(level_ + static_cast<double>(count),
                    static_cast<double>(limit_));
}

std::optional<absl::Duration> TokenBucket::ReadyAt(int64_t count,
                                                   absl::Duration now) {
  if (count > limit_) return std::nullopt;
  if (Available(now) >= count) return refilled_;
  const double missing = static_cast<double>(count) - level_;
  return refilled_ + missing / static_cast<double>(limit_) * period_;
}

void TokenBucket::Refill(absl::Duration now) {
  if (now <= refilled_) return;
  level_ = std::min(level_ + absl::FDivDuration(now - refilled_, period_) *
                                 static_cast<double>(limit_),
                    static_cast<double>(limit_));
  refilled_ = now;
}

}  // namespace txl
