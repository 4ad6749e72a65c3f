#include "server/quota/token_bucket.h"

#include <algorithm>

namespace txl {
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
