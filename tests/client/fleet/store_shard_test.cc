#include "client/fleet/store_shard.h"

#include <gtest/gtest.h>

#include "client/bench/plan/random.h"

namespace txl::fleet {
namespace {

using Shard = StoreShard<int>;

TEST(StoreShard, CommitsOneCommandAtOnce) {
  const StoreCosts costs{0.004, 0.001};
  Shard shard(&costs);
  EXPECT_TRUE(shard.Send(1, 10));
  EXPECT_DOUBLE_EQ(shard.round_end(), 10.005);
  EXPECT_EQ(shard.EndRound(), std::vector<int>{1});
  EXPECT_FALSE(shard.running());
}

TEST(StoreShard, CommitsTogetherWhatCameDuringARound) {
  const StoreCosts costs{0.004, 0.001};
  Shard shard(&costs);
  shard.Send(1, 0);
  EXPECT_FALSE(shard.Send(2, 0.001));
  EXPECT_FALSE(shard.Send(3, 0.002));
  EXPECT_EQ(shard.EndRound(), std::vector<int>{1});
  EXPECT_TRUE(shard.running());
  EXPECT_DOUBLE_EQ(shard.round_end(), 0.005 + 0.006);
  EXPECT_EQ(shard.EndRound(), (std::vector<int>{2, 3}));
  EXPECT_EQ(shard.commands(), 3);
  EXPECT_DOUBLE_EQ(shard.busy_seconds(), 0.011);
}

// Commands come evenly at a rate r: a round of length t has those of the one
// before it, so that t = commit + r t command, whatever the rate is.
TEST(StoreShard, HasLongerRoundsTheMoreComes) {
  const StoreCosts costs{0.0038, 13e-6};
  for (const double rate : {1e4, 3e4, 6e4}) {
    Shard shard(&costs);
    int rounds = 0;
    double now = 0;
    for (int i = 0; i < 200'000; ++i) {
      now += 1 / rate;
      while (shard.running() && shard.round_end() <= now) {
        shard.EndRound();
        ++rounds;
      }
      shard.Send(i, now);
    }
    EXPECT_NEAR(now / rounds / (0.0038 / (1 - rate * 13e-6)), 1, 0.05) << rate;
  }
}

// Commands that come at random, seldom enough to be alone in nearly every
// round: the utilisation law says how busy the shard is.
TEST(StoreShard, IsBusyAsTheUtilisationLawSays) {
  const StoreCosts costs{0.001, 0.0001};
  Shard shard(&costs);
  bench::Random random({5});
  constexpr double kRate = 2.0;
  double now = 0;
  for (int i = 0; i < 20'000; ++i) {
    now += random.Exponential() / kRate;
    while (shard.running() && shard.round_end() <= now) shard.EndRound();
    shard.Send(i, now);
  }
  EXPECT_NEAR(shard.busy_seconds() / now, kRate * 0.0011, 0.0001);
}

}  // namespace
}  // namespace txl::fleet
