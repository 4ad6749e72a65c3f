#include "server/metrics/conservation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A server in the middle of its work, all laws kept.
Snapshot Kept() {
  Snapshot s;
  s.turns_started = 10;
  s.turns_active = 2;
  s.turns_finished = {{"OK", 5}, {"CANCELLED", 3}};
  s.queued_calls = 1;
  s.queued_tokens = 40;
  s.steps = 6;
  s.steps_with_decode = 5;
  s.steps_with_prompt_and_decode = 2;
  s.rows_run = 30;
  s.rows_decode = 11;
  s.rows_prefill = 12;
  s.rows_score = 4;
  s.rows_rebuild = 3;
  s.tokens_fed = 27;
  s.rows_discarded = 3;
  s.tokens_sampled = 11;
  s.tokens_delivered = 9;
  s.tokens_discarded = 2;
  s.slots_total = 4;
  s.slots_used = 4;
  return s;
}

TEST(ConservationTest, AllLawsHoldAtStartAndInTheMiddle) {
  EXPECT_THAT(BrokenLaws(Snapshot{}), IsEmpty());
  EXPECT_THAT(BrokenLaws(Kept()), IsEmpty());
}

TEST(ConservationTest, ALostTurnIsReportedWithBothSides) {
  Snapshot s = Kept();
  s.turns_finished["OK"] = 4;
  EXPECT_THAT(BrokenLaws(s),
              ElementsAre("turns_started = turns_finished + turns_active: "
                          "10 and 9"));
}

TEST(ConservationTest, ARowOfNoKindIsReported) {
  Snapshot s = Kept();
  --s.rows_rebuild;
  EXPECT_THAT(BrokenLaws(s), ElementsAre(HasSubstr("rebuild: 30 and 29")));
}

TEST(ConservationTest, ARowNeitherKeptNorDiscardedIsReported) {
  Snapshot s = Kept();
  ++s.tokens_fed;
  EXPECT_THAT(BrokenLaws(s),
              ElementsAre("rows_run = tokens_fed + rows_discarded: 30 and 31"));
}

TEST(ConservationTest, ALostTokenIsReported) {
  Snapshot s = Kept();
  --s.tokens_delivered;
  EXPECT_THAT(BrokenLaws(s),
              ElementsAre("tokens_sampled = delivered + discarded: 11 and 10"));
}

TEST(ConservationTest, MoreSlotsThanThereAreIsReported) {
  Snapshot s = Kept();
  s.slots_used = 5;
  EXPECT_THAT(BrokenLaws(s), ElementsAre("slots_used <= slots_total: 5 and 4"));
}

TEST(ConservationTest, StepsOfAKindAreAtMostAllSteps) {
  Snapshot s = Kept();
  s.steps_with_decode = 7;
  EXPECT_THAT(BrokenLaws(s),
              ElementsAre("steps_with_decode <= steps: 7 and 6"));
  s = Kept();
  s.steps_with_prompt_and_decode = 6;
  EXPECT_THAT(BrokenLaws(s),
              ElementsAre("steps_with_prompt_and_decode <= steps_with_decode: "
                          "6 and 5"));
}

TEST(ConservationTest, EveryBrokenLawIsReported) {
  Snapshot s = Kept();
  ++s.turns_started;
  ++s.tokens_sampled;
  EXPECT_EQ(BrokenLaws(s).size(), 2u);
}

TEST(ConservationTest, NoCounterIsNegative) {
  int64_t Snapshot::*const counters[] = {
      &Snapshot::queued_calls,       &Snapshot::queued_tokens,
      &Snapshot::sessions_moved_out, &Snapshot::sessions_moved_in,
      &Snapshot::turns_parked,       &Snapshot::slots_used};
  for (int64_t Snapshot::*const counter : counters) {
    Snapshot s = Kept();
    s.*counter = -1;
    EXPECT_THAT(BrokenLaws(s), ElementsAre(HasSubstr(" >= 0: -1")));
  }
  Snapshot s = Kept();
  s.step_seconds = -0.5;
  EXPECT_THAT(BrokenLaws(s), ElementsAre("step_seconds >= 0: -0.5"));
}

TEST(ConservationTest, ANegativeCountIsNotHiddenByALawThatHolds) {
  Snapshot s = Kept();
  s.turns_active = -1;
  s.turns_finished["OK"] = 8;
  EXPECT_THAT(BrokenLaws(s), ElementsAre("turns_active >= 0: -1"));
  s = Kept();
  s.turns_finished = {{"OK", 9}, {"INTERNAL", -1}};
  EXPECT_THAT(BrokenLaws(s), ElementsAre("turns_finished INTERNAL >= 0: -1"));
}

}  // namespace
}  // namespace txl
