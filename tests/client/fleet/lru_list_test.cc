#include "client/fleet/lru_list.h"

#include <gtest/gtest.h>

#include "client/fleet/zipf.h"
#include "tests/client/fleet/small_cell.h"

namespace txl::fleet {
namespace {

TEST(LruList, GivesUpWhatWasUsedLongestAgo) {
  LruList list(2);
  EXPECT_EQ(list.Use(1), std::nullopt);
  EXPECT_EQ(list.Use(2), std::nullopt);
  EXPECT_EQ(list.Use(1), std::nullopt);
  EXPECT_EQ(list.Use(3), 2u);
  EXPECT_TRUE(list.Contains(1));
  EXPECT_FALSE(list.Contains(2));
  EXPECT_EQ(list.size(), 2);
}

TEST(LruList, WithoutRoomGivesUpWhatComes) {
  LruList list(0);
  EXPECT_EQ(list.Use(1), 1u);
  EXPECT_EQ(list.size(), 0);
}

TEST(LruList, LetsGo) {
  LruList list(3);
  for (const uint64_t key : {1, 2, 3}) list.Use(key);
  EXPECT_TRUE(list.Remove(2));
  EXPECT_FALSE(list.Remove(2));
  EXPECT_EQ(list.RemoveOldest(), 1u);
  list.Clear();
  EXPECT_EQ(list.RemoveOldest(), std::nullopt);
}

TEST(LruList, HitsAsOftenAsChesApproximation) {
  for (const double exponent : {0.0, 0.8, 1.2}) {
    for (const int64_t capacity : {50, 500}) {
      bench::Random random({11});
      const Zipf zipf(5000, exponent);
      LruList list(capacity);
      constexpr int kDraws = 200'000;
      int hits = 0;
      for (int i = 0; i < 2 * kDraws; ++i) {
        const auto key = static_cast<uint64_t>(zipf.Draw(random));
        if (i >= kDraws) hits += list.Contains(key);
        list.Use(key);
      }
      EXPECT_NEAR(hits / static_cast<double>(kDraws),
                  CheHitRate(5000, exponent, static_cast<double>(capacity)),
                  0.01)
          << exponent << " " << capacity;
    }
  }
}

}  // namespace
}  // namespace txl::fleet
