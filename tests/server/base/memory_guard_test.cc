#include "server/base/memory_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "server/base/log.h"

namespace txl {
namespace {

TEST(ShouldShedTest, AboveNinetyFivePercentUntilBelowNinetyThree) {
  EXPECT_FALSE(ShouldShed(false, 950, 1000));
  EXPECT_TRUE(ShouldShed(false, 951, 1000));
  EXPECT_TRUE(ShouldShed(true, 931, 1000));
  EXPECT_FALSE(ShouldShed(true, 930, 1000));
  EXPECT_FALSE(ShouldShed(false, 940, 1000));
}

TEST(ShouldShedTest, DoesNotOverflow) {
  constexpr int64_t kMost = int64_t{1} << 62;
  EXPECT_FALSE(ShouldShed(false, 1, kMost));
  EXPECT_TRUE(ShouldShed(false, kMost, kMost));
}

TEST(ResidentBytesTest, CountWhatIsWritten) {
  constexpr int64_t kMore = int64_t{64} << 20;
  const int64_t before = ResidentBytes();
  ASSERT_GT(before, 0);
  std::vector<char> memory(kMore);
  std::memset(memory.data(), 1, memory.size());
  EXPECT_GE(ResidentBytes() - before, kMore / 2);
}

// A process whose memory is played; each sample is one call of `resident`.
class MemoryGuardTest : public ::testing::Test {
 protected:
  MemoryGuardOptions Options() {
    MemoryGuardOptions options;
    options.limit = 1000;
    options.interval = absl::Microseconds(100);
    options.resident = [this] { return resident_.load(); };
    options.trim = [this] {
      ++trims_;
      resident_ -= unused_.exchange(0);
    };
    return options;
  }
  // Until it is so; an answer that never comes is the test's time limit.
  static void Await(const MemoryGuard& guard, bool shedding) {
    while (guard.Shedding() != shedding) std::this_thread::yield();
  }

  LogCapture capture_;
  std::atomic<int64_t> resident_{100};
  std::atomic<int64_t> unused_{0};  // of the heap, what a trim gives back
  std::atomic<int> trims_{0};
};

TEST_F(MemoryGuardTest, KnowsTheBytesAtOnce) {
  const MemoryGuard guard(Options());
  EXPECT_EQ(guard.resident_bytes(), 100);
  EXPECT_EQ(guard.limit(), 1000);
  EXPECT_FALSE(guard.Shedding());
}

TEST_F(MemoryGuardTest, ShedsAndStopsAndSaysBoth) {
  const MemoryGuard guard(Options());
  resident_ = 960;
  Await(guard, true);
  resident_ = 900;
  Await(guard, false);
  while (capture_.lines().size() < 2) std::this_thread::yield();
  EXPECT_NE(capture_.lines()[0].find("\"shedding\":true"), std::string::npos);
  EXPECT_NE(capture_.lines()[1].find("\"shedding\":false"), std::string::npos);
}

TEST_F(MemoryGuardTest, ShedsNothingWhenTheHeapGivesEnoughBack) {
  const MemoryGuard guard(Options());
  unused_ = 500;
  resident_ = 1000;
  while (guard.resident_bytes() != 500) std::this_thread::yield();
  EXPECT_FALSE(guard.Shedding());
  EXPECT_EQ(trims_, 1);
  EXPECT_TRUE(capture_.lines().empty());
}

TEST_F(MemoryGuardTest, TrimsAgainWhileItSheds) {
  const MemoryGuard guard(Options());
  resident_ = 1000;
  Await(guard, true);
  unused_ = 500;
  Await(guard, false);
  EXPECT_GE(trims_, 2);
}

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

// A small model on the CPU: weights of 8 MiB, slots of 5 MiB.
MemoryWishes Wishes(int64_t limit) {
  MemoryWishes wishes;
  wishes.limit = limit;
  wishes.weights = 8 * kMiB;
  wishes.step = kMiB;
  wishes.bytes_per_slot = 5 * kMiB;
  wishes.most_slots = 256;
  wishes.message_bytes = kMiB;
  return wishes;
}

int64_t Sum(const MemoryDivision& division) {
  return division.weights + division.slots + division.images +
         division.prefixes + division.ids + division.records +
         division.requests + division.streams + division.reserve;
}

std::string Error(const MemoryWishes& wishes) {
  const auto division = DivideMemory(wishes);
  EXPECT_EQ(division.status().code(), absl::StatusCode::kResourceExhausted);
  return std::string(division.status().message());
}

TEST(DivideMemoryTest, ThePartsAreTheLimitWhateverItIs) {
  for (const int64_t limit : {256 * kMiB, 300 * kMiB, kGiB, 3 * kGiB + 12345,
                              64 * kGiB, 2048 * kGiB}) {
    const auto division = DivideMemory(Wishes(limit));
    ASSERT_TRUE(division.ok()) << limit << division.status();
    EXPECT_EQ(division->limit, limit);
    EXPECT_EQ(Sum(*division), limit);
    EXPECT_EQ(division->weights, 8 * kMiB);
    EXPECT_GT(division->images, 0);
    EXPECT_GT(division->prefixes, 0);
    EXPECT_LE(division->prefixes, 16 * kGiB);
    EXPECT_GE(division->ids, kMiB);
    EXPECT_GT(division->records, 0);
    EXPECT_GE(division->requests, 8 * kMiB);
    EXPECT_GT(division->streams, 0);
    EXPECT_GE(division->reserve, 160 * kMiB + limit / 10);
  }
}

TEST(DivideMemoryTest, ASmallLimitHasASlotAtLeast) {
  EXPECT_GE(DivideMemory(Wishes(256 * kMiB))->slots, 5 * kMiB);
}

TEST(DivideMemoryTest, SlotsAreWholeAndNoMoreThanAreOfUse) {
  EXPECT_EQ(DivideMemory(Wishes(kGiB))->slots % (5 * kMiB), 0);
  EXPECT_EQ(DivideMemory(Wishes(64 * kGiB))->slots, 256 * 5 * kMiB);
}

TEST(DivideMemoryTest, WhatNoPartTakesIsForImages) {
  EXPECT_GT(DivideMemory(Wishes(64 * kGiB))->images, 32 * kGiB);
}

TEST(DivideMemoryTest, SlotsOfADeviceTakeNothingOfTheHost) {
  MemoryWishes wishes = Wishes(kGiB);
  wishes.weights = 0;
  wishes.bytes_per_slot = 0;
  wishes.slots = 100'000;
  wishes.slot_memory = 80 * kGiB;  // the device's
  const auto division = DivideMemory(wishes);
  ASSERT_TRUE(division.ok()) << division.status();
  EXPECT_EQ(division->slots, 0);
  EXPECT_EQ(division->weights, 0);
  EXPECT_EQ(Sum(*division), kGiB);
}

TEST(DivideMemoryTest, FlagsAreHonoured) {
  MemoryWishes wishes = Wishes(kGiB);
  wishes.slots = 20;
  wishes.session_memory = 200 * kMiB;
  wishes.replay_memory = 30 * kMiB;
  wishes.prefix_cache = 40 * kMiB;
  const auto division = DivideMemory(wishes);
  ASSERT_TRUE(division.ok()) << division.status();
  EXPECT_EQ(division->slots, 20 * 5 * kMiB);
  EXPECT_EQ(division->images, 200 * kMiB);
  EXPECT_EQ(division->records, 30 * kMiB);
  EXPECT_EQ(division->prefixes, 40 * kMiB);
  EXPECT_EQ(Sum(*division), kGiB);
}

TEST(DivideMemoryTest, WithoutAPrefixCacheTheOtherPartsHaveItsShare) {
  MemoryWishes wishes = Wishes(kGiB);
  const auto with = DivideMemory(wishes);
  wishes.prefix_cache = 0;
  const auto without = DivideMemory(wishes);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->prefixes, 0);
  EXPECT_EQ(Sum(*without), kGiB);
  EXPECT_GT(without->slots, with->slots);
  EXPECT_GT(without->streams, with->streams);
}

TEST(DivideMemoryTest, MoreSlotsThanAreOfUseAreTheUsersChoice) {
  MemoryWishes wishes = Wishes(64 * kGiB);
  wishes.slots = 1000;
  EXPECT_EQ(DivideMemory(wishes)->slots, 1000 * 5 * kMiB);
}

TEST(DivideMemoryTest, SlotsGoBeforeTheirBytes) {
  MemoryWishes wishes = Wishes(kGiB);
  wishes.slots = 2;
  wishes.slot_memory = 100 * kMiB;
  EXPECT_EQ(DivideMemory(wishes)->slots, 10 * kMiB);
  wishes.slots = 0;
  EXPECT_EQ(DivideMemory(wishes)->slots, 100 * kMiB);
}

TEST(DivideMemoryTest, AFlagThatDoesNotFitIsNamedWithWhatItAsksAndWhatIsLeft) {
  MemoryWishes wishes = Wishes(kGiB);
  wishes.session_memory = 4 * kGiB;
  EXPECT_THAT(Error(wishes),
              AllOf(HasSubstr("--session-memory: asks for 4294967296"),
                    HasSubstr("left of the 1073741824")));
  wishes = Wishes(kGiB);
  wishes.replay_memory = kGiB;
  EXPECT_THAT(Error(wishes), HasSubstr("--replay-memory"));
  wishes = Wishes(kGiB);
  wishes.prefix_cache = kGiB;
  EXPECT_THAT(Error(wishes), HasSubstr("--prefix-cache: asks for 1073741824"));
  wishes = Wishes(kGiB);
  wishes.slot_memory = kGiB;
  EXPECT_THAT(Error(wishes), HasSubstr("--slot-memory"));
  wishes.slots = 1 << 20;
  EXPECT_THAT(Error(wishes), HasSubstr("--slots: asks for 5497558138880"));
}

TEST(DivideMemoryTest, FlagsThatFitOneByOneButNotTogether) {
  MemoryWishes wishes = Wishes(kGiB);
  wishes.slot_memory = 500 * kMiB;
  wishes.session_memory = 500 * kMiB;
  EXPECT_THAT(Error(wishes), HasSubstr("--session-memory"));
}

TEST(DivideMemoryTest, AWishDoesNotOverflow) {
  MemoryWishes wishes = Wishes(kGiB);
  wishes.slots = int64_t{1} << 62;
  EXPECT_THAT(Error(wishes), HasSubstr("--slots"));
}

TEST(DivideMemoryTest, ALimitThatIsTooSmallIsToldWhatItNeeds) {
  for (const int64_t limit : {int64_t{1}, 64 * kMiB, 180 * kMiB}) {
    const std::string error = Error(Wishes(limit));
    EXPECT_THAT(error, HasSubstr("--memory-limit"));
    const size_t at = error.find("it needs ") + 9;
    const int64_t needed = std::stoll(error.substr(at));
    EXPECT_TRUE(DivideMemory(Wishes(needed)).ok()) << error;
    EXPECT_FALSE(DivideMemory(Wishes(needed - 100)).ok()) << error;
  }
}

}  // namespace

}  // namespace txl
