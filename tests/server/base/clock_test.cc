#include "server/base/clock.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "tests/fakes/fake_clock.h"

namespace txl {
namespace {

TEST(ClockTest, RealWallTimeIsTheSystemsTime) {
  const absl::Time before = absl::Now();
  const absl::Time now = Clock::Real()->Now();
  const absl::Time after = absl::Now();
  EXPECT_GE(now, before);
  EXPECT_LE(now, after);
}

TEST(ClockTest, RealMonotonicTimeNeverGoesBack) {
  absl::Duration last = Clock::Real()->Monotonic();
  for (int i = 0; i < 1000; ++i) {
    const absl::Duration now = Clock::Real()->Monotonic();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(ClockTest, RealIsOneObject) { EXPECT_EQ(Clock::Real(), Clock::Real()); }

TEST(FakeClockTest, StandsStillUntilItIsMoved) {
  FakeClock clock;
  const absl::Time now = clock.Now();
  const absl::Duration monotonic = clock.Monotonic();
  EXPECT_EQ(clock.Now(), now);
  EXPECT_EQ(clock.Monotonic(), monotonic);
  clock.Advance(absl::Seconds(90));
  EXPECT_EQ(clock.Now() - now, absl::Seconds(90));
  EXPECT_EQ(clock.Monotonic() - monotonic, absl::Seconds(90));
}

TEST(FakeClockTest, SettingTheWallClockDoesNotMoveMonotonicTime) {
  FakeClock clock;
  const absl::Duration monotonic = clock.Monotonic();
  clock.SetNow(absl::UnixEpoch());
  EXPECT_EQ(clock.Now(), absl::UnixEpoch());
  EXPECT_EQ(clock.Monotonic(), monotonic);
}

}  // namespace
}  // namespace txl
