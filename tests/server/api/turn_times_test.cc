#include "server/api/turn_times.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

constexpr absl::Duration kBegin = absl::Hours(1);

absl::Duration At(int seconds) { return kBegin + absl::Seconds(seconds); }

TEST(TurnTimes, OfNoTurnAreZero) {
  const TurnTimes times;
  EXPECT_EQ(times.Queue(), absl::ZeroDuration());
  EXPECT_EQ(times.Run(), absl::ZeroDuration());
}

TEST(TurnTimes, AreThoseBetweenItsBorders) {
  const TurnTimes times = {At(0), At(1), At(3), At(7)};
  EXPECT_EQ(times.Queue(), absl::Seconds(1));
  EXPECT_EQ(times.Prefill(), absl::Seconds(2));
  EXPECT_EQ(times.Decode(), absl::Seconds(4));
  EXPECT_EQ(times.Run(), absl::Seconds(6));
}

TEST(TurnTimes, OfATurnThatBrokeOffGoAsFarAsItCame) {
  const TurnTimes waited = {At(0), std::nullopt, std::nullopt, At(5)};
  EXPECT_EQ(waited.Queue(), absl::Seconds(5));
  EXPECT_EQ(waited.Run(), absl::ZeroDuration());
  const TurnTimes fed = {At(0), At(1), std::nullopt, At(5)};
  EXPECT_EQ(fed.Queue(), absl::Seconds(1));
  EXPECT_EQ(fed.Prefill(), absl::Seconds(4));
  EXPECT_EQ(fed.Decode(), absl::ZeroDuration());
}

TEST(EndWell, TakesTheSchedulersTimes) {
  TurnTimes times = {At(10), At(20), std::nullopt, std::nullopt};
  EndWell({1.5, 2, 0.25}, &times);
  EXPECT_EQ(times.queued, At(10));
  EXPECT_EQ(times.Queue(), absl::Milliseconds(1500));
  EXPECT_EQ(times.Prefill(), absl::Seconds(2));
  EXPECT_EQ(times.Decode(), absl::Milliseconds(250));
}

TEST(EndWell, OfATurnThatIsToldAgainNothingRan) {
  TurnTimes times = {At(10), std::nullopt, std::nullopt, std::nullopt};
  EndWell({1.5, 2, 0.25}, &times);
  EXPECT_FALSE(times.queued.has_value());
  EXPECT_EQ(times.Queue() + times.Run(), absl::ZeroDuration());
}

}  // namespace
}  // namespace txl
