#include "client/bench/plan/capacity_search.h"

#include <gtest/gtest.h>

#include <cmath>

namespace txl::bench {
namespace {

// The trials of a search on something that is good up to `limit`.
std::vector<Trial> Search(const CapacitySearch& search, double limit) {
  std::vector<Trial> trials;
  while (const auto rate = NextRate(search, trials)) {
    trials.push_back({*rate, *rate <= limit});
  }
  return trials;
}

TEST(NextRate, BeginsAtTheFirstAndDoublesUntilItIsTooMuch) {
  const CapacitySearch search{.first_rate = 3};
  EXPECT_EQ(NextRate(search, {}), 3);
  EXPECT_EQ(NextRate(search, {{3, true}}), 6);
  EXPECT_EQ(NextRate(search, {{3, true}, {6, true}}), 12);
}

TEST(NextRate, HalvesWhileNothingIsGood) {
  const CapacitySearch search{.first_rate = 8};
  EXPECT_EQ(NextRate(search, {{8, false}}), 4);
  EXPECT_EQ(NextRate(search, {{8, false}, {4, false}}), 2);
}

TEST(NextRate, GoesToTheGeometricMeanBetween) {
  EXPECT_DOUBLE_EQ(*NextRate({}, {{4, true}, {9, false}}), 6);
}

TEST(ASearch, FindsTheCapacityToItsTolerance) {
  for (const double limit : {0.02, 0.9, 1.0, 7.3, 450.0}) {
    for (const double tolerance : {0.02, 0.2}) {
      const CapacitySearch search{.first_rate = 1, .tolerance = tolerance};
      const Capacity capacity = CapacityOf(search, Search(search, limit));
      EXPECT_TRUE(capacity.exact) << limit;
      EXPECT_LE(capacity.good, limit);
      EXPECT_GT(capacity.bad, limit);
      EXPECT_LE(capacity.bad, capacity.good * (1 + tolerance));
    }
  }
}

TEST(ASearch, EndsWhereNothingIsGoodOrNothingIsBad) {
  const CapacitySearch search{.max_trials = 50};
  const std::vector<Trial> none = Search(search, 0);
  EXPECT_LE(none.size(), 11u);
  EXPECT_EQ(CapacityOf(search, none).good, 0);
  EXPECT_FALSE(CapacityOf(search, none).exact);
  const std::vector<Trial> all = Search(search, 1e9);
  EXPECT_LE(all.size(), 11u);
  EXPECT_TRUE(std::isinf(CapacityOf(search, all).bad));
}

TEST(ASearch, EndsAfterItsTrials) {
  const CapacitySearch search{.tolerance = 1e-9, .max_trials = 6};
  EXPECT_EQ(Search(search, 5).size(), 6u);
}

TEST(CapacityOf, DoesNotCountLuckAboveABadRate) {
  const Capacity capacity =
      CapacityOf({}, {{1, true}, {2, false}, {4, true}, {1.5, true}});
  EXPECT_EQ(capacity.good, 1.5);
  EXPECT_EQ(capacity.bad, 2);
}

}  // namespace
}  // namespace txl::bench
