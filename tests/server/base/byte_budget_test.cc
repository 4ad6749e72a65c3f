#include "server/base/byte_budget.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <utility>

namespace txl {
namespace {

TEST(ByteBudget, GivesAllOrNothingAndCountsWhatItRefuses) {
  ByteBudget budget(10);
  std::optional<ByteHold> hold = budget.TryHold(7);
  ASSERT_TRUE(hold.has_value());
  EXPECT_FALSE(budget.TryHold(4).has_value());
  EXPECT_TRUE(budget.TryHold(3).has_value());  // given back at once
  EXPECT_EQ(budget.used(), 7);
  EXPECT_EQ(budget.refused(), 1);
  ByteHold moved = *std::move(hold);
  moved.Release();
  EXPECT_EQ(budget.used(), 0);
}

TEST(ByteBudget, OfNoLimitRefusesNothing) {
  ByteBudget* const budget = ByteBudget::Unlimited();
  constexpr int64_t kMuch = std::numeric_limits<int64_t>::max() / 2;
  const auto one = budget->TryHold(kMuch);
  const auto other = budget->TryHold(kMuch);
  EXPECT_TRUE(one.has_value() && other.has_value());
  EXPECT_EQ(budget->used(), 2 * kMuch);
  EXPECT_EQ(budget->refused(), 0);
}

}  // namespace
}  // namespace txl
