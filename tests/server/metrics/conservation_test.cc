#include "tests/server/metrics/conservation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void Observe(Histogram& histogram, int times) {
  for (int i = 0; i < times; ++i) histogram.Observe(0.01);
}

// A server in the middle of its work, all laws kept.
Snapshot Kept() {
  Snapshot s;
  s.turns_started = 10;
  s.turns_active = 2;
  s.turns_finished = {{"OK", 5}, {"CANCELLED", 3}};
  s.turns_ended = {{{"OK", "MAX_TOKENS"}, 4},
                   {{"OK", "APPENDED"}, 1},
                   {{"CANCELLED", "CANCELLED"}, 3}};
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
  s.softmax_tails = {{.computed = 9, .skipped = 6},
                     {.computed = 0, .skipped = 15}};
  s.stream_queue_tokens = 3;
  s.slots_total = 4;
  s.slots_used = 4;
  s.turns_parked = 2;
  s.turns_parked_out = 1;
  s.parked_moves = 5;
  Distributions& d = s.distributions;
  Observe(d.queue_seconds, 9);
  Observe(d.request_seconds, 8);
  Observe(d.prompt_tokens, 8);
  Observe(d.generated_tokens, 7);
  Observe(d.first_token_seconds, 4);
  Observe(d.inter_token_seconds, 5);
  s.steps_failed = 1;
  Observe(d.step_seconds[0], 2);
  Observe(d.step_seconds[1], 1);
  Observe(d.step_seconds[2], 2);
  Observe(d.step_batch_size, 6);
  Observe(d.step_tokens, 6);
  return s;
}

TEST(ConservationTest, AllLawsHoldAtStartAndInTheMiddle) {
  EXPECT_THAT(BrokenLaws(Snapshot{}), IsEmpty());
  EXPECT_THAT(BrokenLaws(Kept()), IsEmpty());
}

TEST(ConservationTest, ALostTurnIsReportedWithBothSides) {
  Snapshot s = Kept();
  s.turns_started = 11;
  Observe(s.distributions.queue_seconds, 1);
  EXPECT_THAT(BrokenLaws(s),
              ElementsAre("turns_started = turns_finished + turns_active: "
                          "11 and 10"));
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
  ++s.tokens_sampled;
  EXPECT_THAT(BrokenLaws(s),
              ElementsAre("tokens_sampled = delivered + discarded: 12 and 11"));
}

TEST(ConservationTest, ADistributionWithoutOneOfItsClustersIsReported) {
  Snapshot s = Kept();
  ++s.softmax_tails[1].computed;
  EXPECT_THAT(BrokenLaws(s),
              ElementsAre("softmax_tails of every cluster: 15 and 16"));
  s = Kept();
  s.softmax_tails[1] = {.computed = 16, .skipped = -1};
  EXPECT_THAT(BrokenLaws(s), ElementsAre("softmax_tails skipped >= 0: -1"));
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
  ++s.rows_run;  // of no kind, neither kept nor discarded
  ++s.tokens_sampled;
  EXPECT_EQ(BrokenLaws(s).size(), 3u);
}

TEST(ConservationTest, AnEventThatIsNotInItsDistributionIsReported) {
  const std::vector<std::pair<Histogram Distributions::*, std::string>> laws = {
      {&Distributions::queue_seconds,
       "turns_started = queued_calls + queue_seconds: 10 and 11"},
      {&Distributions::request_seconds,
       "turns_finished = request_seconds: 8 and 9"},
      {&Distributions::prompt_tokens,
       "turns_finished = prompt_tokens: 8 and 9"},
      {&Distributions::first_token_seconds,
       "tokens_delivered = first_token_seconds + inter_token_seconds: "
       "9 and 10"},
      {&Distributions::inter_token_seconds,
       "tokens_delivered = first_token_seconds + inter_token_seconds: "
       "9 and 10"},
      {&Distributions::step_batch_size, "steps = step_batch_size: 6 and 7"},
      {&Distributions::step_tokens, "steps = step_tokens: 6 and 7"}};
  for (const auto& [histogram, law] : laws) {
    Snapshot s = Kept();
    Observe(s.distributions.*histogram, 1);
    EXPECT_THAT(BrokenLaws(s), ElementsAre(law));
  }
  Snapshot s = Kept();
  Observe(s.distributions.step_seconds[1], 1);
  EXPECT_THAT(BrokenLaws(s),
              ElementsAre("steps = steps_failed + step_seconds: 6 and 7"));
  s = Kept();
  Observe(s.distributions.generated_tokens, 2);
  EXPECT_THAT(BrokenLaws(s),
              ElementsAre("generated_tokens <= turns_finished: 9 and 8"));
}

TEST(ConservationTest, ReasonsAreThoseOfTheFinishedTurns) {
  Snapshot s = Kept();
  s.turns_ended[{"OK", "APPENDED"}] = 2;
  EXPECT_THAT(BrokenLaws(s),
              ElementsAre("turns_finished = turns_ended OK: 5 and 6"));
  s = Kept();
  s.turns_ended[{"INTERNAL", "STEP_FAILED"}] = 1;
  EXPECT_THAT(BrokenLaws(s),
              ElementsAre("turns_finished = turns_ended INTERNAL: 0 and 1"));
  s = Kept();
  s.turns_ended.erase({"CANCELLED", "CANCELLED"});
  EXPECT_THAT(BrokenLaws(s),
              ElementsAre("turns_finished = turns_ended CANCELLED: 3 and 0"));
}

TEST(ConservationTest, OnlyParkedTurnsGiveTheirSlotsUp) {
  Snapshot s = Kept();
  s.turns_parked_out = 3;
  EXPECT_THAT(BrokenLaws(s),
              ElementsAre("turns_parked_out <= turns_parked: 3 and 2"));
}

TEST(ConservationTest, NoCounterIsNegative) {
  int64_t Snapshot::*const counters[] = {
      &Snapshot::queued_tokens,     &Snapshot::sessions_moved_out,
      &Snapshot::sessions_moved_in, &Snapshot::turns_parked_out,
      &Snapshot::parked_moves,      &Snapshot::tokens_prompt,
      &Snapshot::slots_used,        &Snapshot::stream_queue_tokens};
  for (int64_t Snapshot::*const counter : counters) {
    Snapshot s = Kept();
    s.*counter = -1;
    EXPECT_THAT(BrokenLaws(s), ElementsAre(HasSubstr(" >= 0: -1")));
  }
  Snapshot s = Kept();
  s.turns_parked = s.turns_parked_out = -1;
  EXPECT_THAT(BrokenLaws(s), ElementsAre("turns_parked >= 0: -1",
                                         "turns_parked_out >= 0: -1"));
  s = Kept();
  s.step_seconds = -0.5;
  EXPECT_THAT(BrokenLaws(s), ElementsAre("step_seconds >= 0: -0.5"));
}

TEST(ConservationTest, ANegativeCountIsNotHiddenByALawThatHolds) {
  Snapshot s = Kept();
  s.turns_active = -1;
  s.turns_started = 7;
  s.queued_calls = -2;
  EXPECT_THAT(BrokenLaws(s),
              ElementsAre("turns_active >= 0: -1", "queued_calls >= 0: -2"));
  s = Kept();
  s.turns_finished = {{"OK", 9}, {"INTERNAL", -1}};
  s.turns_ended = {{{"OK", "MAX_TOKENS"}, 9}, {{"INTERNAL", "BAD"}, -1}};
  EXPECT_THAT(BrokenLaws(s), ElementsAre("turns_finished INTERNAL >= 0: -1",
                                         "turns_ended BAD >= 0: -1"));
}

TEST(ConservationTest, SessionsAreInMemoryStoredAwayOrEnded) {
  SessionCounts sessions;
  EXPECT_THAT(BrokenLaws(sessions), IsEmpty());
  sessions.created = 10;
  sessions.loaded = 4;
  sessions.ended = 3;
  sessions.stored_away = 5;
  sessions.idle = 4;
  sessions.busy = 2;
  EXPECT_THAT(BrokenLaws(sessions), IsEmpty());
  ++sessions.loaded;
  EXPECT_THAT(
      BrokenLaws(sessions),
      ElementsAre("created + loaded = ended + stored_away + idle + busy: "
                  "15 and 14"));
  sessions.busy = -1;
  sessions.idle = 8;
  EXPECT_THAT(BrokenLaws(sessions), ElementsAre("busy >= 0: -1"));
}

}  // namespace
}  // namespace txl
