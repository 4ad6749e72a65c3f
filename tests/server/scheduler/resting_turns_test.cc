#include "server/scheduler/resting_turns.h"

#include <gtest/gtest.h>

#include <map>

namespace txl {
namespace {

SchedulerOptions RestOptions() {
  SchedulerOptions options;
  options.park_events = 8;
  options.max_parked_turns = 2;
  options.priority_age = absl::Seconds(5);
  options.slow_reader_limit = absl::Seconds(30);
  return options;
}

// A stream whose reader has read all but `unsent` of its events.
RestLook Unread(int unsent) {
  RestLook look;
  look.streams = true;
  look.given = 100;
  look.unsent = unsent;
  return look;
}

RestLook Paused(absl::Duration until) {
  RestLook look = Unread(0);
  look.paused_until = until;
  return look;
}

class RestingTurnsTest : public ::testing::Test {
 protected:
  void Look(uint64_t id, const RestLook& look, double seconds) {
    turns_.Look(id, rests_[id], look, absl::Seconds(seconds));
  }
  void Yield(uint64_t id) { turns_.Yield(id, rests_[id]); }
  void Enter(uint64_t id, double seconds) {
    turns_.Enter(id, rests_[id], absl::Seconds(seconds));
  }
  void End(uint64_t id, double seconds) {
    turns_.End(id, rests_[id], absl::Seconds(seconds));
    rests_.erase(id);
  }
  static RestingTurns::Place At(double seconds, uint64_t id) {
    return {absl::Seconds(seconds), id};
  }

  Metrics metrics_;
  RestingTurns turns_{RestOptions(), &metrics_};
  std::map<uint64_t, TurnRest> rests_;
};

TEST_F(RestingTurnsTest, AFullStreamIsParkedAndYieldsOnceNothingIsInFlight) {
  RestLook full = Unread(8);
  full.tokens_in_flight = 1;
  Look(1, full, 10);
  EXPECT_TRUE(rests_[1].parked());
  EXPECT_FALSE(rests_[1].rests());
  EXPECT_FALSE(turns_.FirstToYield().has_value());
  EXPECT_EQ(metrics_.Get().turns_parked, 1);
  Look(1, Unread(8), 12);
  EXPECT_TRUE(rests_[1].rests());
  // It stands still since its reader lagged.
  EXPECT_EQ(turns_.FirstToYield(), At(10, 1));
  Look(1, Unread(7), 15);
  EXPECT_FALSE(rests_[1].parked());
  EXPECT_FALSE(rests_[1].rests());
  EXPECT_FALSE(turns_.FirstToYield().has_value());
  EXPECT_EQ(metrics_.Get().turns_parked, 0);
  EXPECT_EQ(metrics_.Get().distributions.stall_seconds.count(), 1);
}

TEST_F(RestingTurnsTest, APromptStandsStillForNothing) {
  RestLook prompt;
  prompt.paused_until = absl::Seconds(50);
  turns_.Ask(1);
  Look(1, prompt, 10);
  EXPECT_TRUE(rests_[1].paused());
  EXPECT_FALSE(rests_[1].rests());
}

TEST_F(RestingTurnsTest, WhoStandsStillLongestYieldsFirst) {
  Look(1, Unread(8), 12);
  Look(2, Unread(9), 11);
  Look(3, Paused(absl::Seconds(50)), 13);
  EXPECT_EQ(turns_.FirstToYield(), At(11, 2));
  Yield(2);
  EXPECT_EQ(turns_.FirstToYield(), At(12, 1));
  Yield(1);
  EXPECT_EQ(turns_.FirstToYield(), At(13, 3));
}

TEST_F(RestingTurnsTest, AParkedTurnComesBackWhenHalfOfItsEventsAreRead) {
  Look(1, Unread(8), 10);
  Yield(1);
  EXPECT_TRUE(rests_[1].away());
  EXPECT_EQ(metrics_.Get().turns_parked_out, 1);
  EXPECT_EQ(metrics_.Get().parked_moves, 1);
  Look(1, Unread(5), 11);
  EXPECT_FALSE(turns_.FirstToReturn().has_value());
  RestLook urgent = Unread(4);
  urgent.priority = 2;
  Look(1, urgent, 20);
  Look(1, urgent, 30);  // from when it had caught up
  EXPECT_EQ(turns_.FirstToReturn(), At(10, 1));
  turns_.Return(1, rests_[1]);
  Look(1, urgent, 31);  // only once
  EXPECT_FALSE(turns_.FirstToReturn().has_value());
  EXPECT_TRUE(rests_[1].away());
  Enter(1, 32);
  EXPECT_FALSE(rests_[1].away());
  EXPECT_FALSE(rests_[1].rests());
  EXPECT_EQ(metrics_.Get().turns_parked_out, 0);
  EXPECT_EQ(metrics_.Get().turns_parked, 0);
}

TEST_F(RestingTurnsTest, ADisplacedTurnIsDueFromItsArrival) {
  RestLook paused = Paused(absl::Seconds(50));
  paused.submitted = absl::Seconds(3);
  Look(1, paused, 10);
  EXPECT_EQ(turns_.FirstToYield(), At(10, 1));
  Yield(1);
  EXPECT_EQ(metrics_.Get().turns_displaced, 1);
  EXPECT_EQ(metrics_.Get().turns_parked_out, 0);
  Look(1, paused, 20);  // has no tokens yet
  EXPECT_FALSE(turns_.FirstToReturn().has_value());
  paused.paused_until.reset();
  Look(1, paused, 50);
  EXPECT_EQ(turns_.FirstToReturn(), At(3, 1));
}

TEST_F(RestingTurnsTest, AnAskedTurnGoesOnUnlessSomethingElseHoldsIt) {
  EXPECT_EQ(turns_.Ask(1), std::nullopt);
  EXPECT_EQ(turns_.Ask(1), std::nullopt);
  EXPECT_TRUE(turns_.asked(1));
  Look(1, Unread(0), 10);
  EXPECT_TRUE(rests_[1].rests());
  EXPECT_EQ(turns_.Ask(2), 1);  // instead
  EXPECT_FALSE(turns_.asked(1));
  turns_.GoOn(1, rests_[1]);
  EXPECT_FALSE(rests_[1].rests());
  Look(2, Unread(8), 11);
  EXPECT_EQ(turns_.Ask(std::nullopt), 2);
  turns_.GoOn(2, rests_[2]);
  EXPECT_TRUE(rests_[2].rests());
}

TEST_F(RestingTurnsTest, SoManyMayBeAway) {
  for (const uint64_t id : {1, 2}) {
    EXPECT_TRUE(turns_.room_away());
    Look(id, Unread(8), 10);
    Yield(id);
  }
  EXPECT_FALSE(turns_.room_away());
  EXPECT_FALSE(turns_.too_many_away());
  // A paused turn keeps its slot then; a parked one is one too many.
  Look(3, Paused(absl::Seconds(50)), 11);
  EXPECT_FALSE(rests_[3].rests());
  Look(4, Unread(8), 11);
  Yield(4);
  EXPECT_TRUE(turns_.too_many_away());
  End(4, 11);
  EXPECT_FALSE(turns_.too_many_away());
}

TEST_F(RestingTurnsTest, ATurnThatEndsStandsInNoLine) {
  Look(1, Unread(8), 10);
  Look(2, Unread(8), 10);
  Yield(2);
  Look(2, Unread(0), 11);
  End(1, 12);
  End(2, 12);
  EXPECT_FALSE(turns_.FirstToYield().has_value());
  EXPECT_FALSE(turns_.FirstToReturn().has_value());
  EXPECT_TRUE(turns_.room_away());
  EXPECT_EQ(metrics_.Get().turns_parked, 0);
  EXPECT_EQ(metrics_.Get().turns_parked_out, 0);
}

TEST_F(RestingTurnsTest, SaysWhenALookMayFindSomethingElse) {
  EXPECT_EQ(rests_[1].NextLimit(RestOptions()), absl::InfiniteDuration());
  Look(1, Paused(absl::Seconds(50)), 10);
  EXPECT_EQ(rests_[1].NextLimit(RestOptions()), absl::Seconds(50));
  Look(2, Unread(8), 10);
  EXPECT_EQ(rests_[2].NextLimit(RestOptions()), absl::Seconds(40));
  EXPECT_FALSE(rests_[2].TooSlow(RestOptions()));
  Look(2, Unread(8), 40);
  EXPECT_TRUE(rests_[2].TooSlow(RestOptions()));
}

TEST_F(RestingTurnsTest, AllAreLookedAtNowAndThenWhileStepsRun) {
  const auto may_look = [&](bool stepping, double milliseconds) {
    return turns_.MayLookAtAll(stepping, absl::Milliseconds(milliseconds));
  };
  EXPECT_TRUE(may_look(true, 10));
  EXPECT_TRUE(may_look(true, 10));  // no time is lost
  EXPECT_FALSE(may_look(true, 10.5));
  EXPECT_TRUE(may_look(false, 10.5));
  EXPECT_FALSE(may_look(true, 11));
  EXPECT_TRUE(may_look(true, 11.5));
}

}  // namespace
}  // namespace txl
