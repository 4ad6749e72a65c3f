#include "client/cli/status_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace txl::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

v1::GetServerStatusResponse Busy() {
  v1::GetServerStatusResponse status;
  status.set_state(v1::SERVER_STATE_READY);
  status.mutable_uptime()->set_seconds(120);
  status.set_sessions_busy(3);
  status.set_sessions_idle(10);
  status.set_slots_used(8);
  status.set_slots_total(16);
  status.set_queued_calls(2);
  status.set_queued_tokens(40);
  status.set_turns_active(5);
  status.set_turns_parked(1);
  status.set_stream_queue_tokens(70);
  status.set_steps(7);
  return status;
}

StatusRates Rates() {
  return {.seconds = 2,
          .tokens_per_second = 1234.56,
          .steps_per_second = 300.04,
          .rows_per_step = 4.25,
          .turns_ended = {{"CANCELLED", 1}, {"OK", 12}}};
}

TEST(StatusTextTest, EveryStateHasAName) {
  EXPECT_EQ(StateName(v1::SERVER_STATE_STARTING), "starting");
  EXPECT_EQ(StateName(v1::SERVER_STATE_READY), "ready");
  EXPECT_EQ(StateName(v1::SERVER_STATE_DRAINING), "draining");
  EXPECT_EQ(StateName(v1::SERVER_STATE_UNSPECIFIED), "unknown");
}

TEST(StatusTextTest, ALineOfAWatchSaysAllInOneLine) {
  EXPECT_EQ(FormatWatchLine(Busy(), Rates()),
            "ready, up 120 s; sessions 3 busy, 10 idle; slots 8 of 16; "
            "queue 2 calls; last 2.0 s: 1234.6 tokens/s, 300.0 steps/s, "
            "4.2 rows/step, turns ended: CANCELLED 1, OK 12\n");
}

TEST(StatusTextTest, AScreenOfAWatchHasAValueInEveryLine) {
  EXPECT_EQ(FormatWatchScreen(Busy(), Rates()),
            "state        ready, up 120 s\n"
            "sessions     3 busy, 10 idle\n"
            "slots        8 of 16\n"
            "queue        2 calls, 40 tokens\n"
            "turns        5 active, 1 parked\n"
            "streams      70 tokens unread\n"
            "\n"
            "in the last  2.0 s\n"
            "tokens/s     1234.6\n"
            "steps/s      300.0\n"
            "rows/step    4.2\n"
            "turns ended  CANCELLED 1, OK 12\n");
}

TEST(StatusTextTest, NoTurnsAreNone) {
  EXPECT_THAT(FormatWatchLine(Busy(), StatusRates()),
              HasSubstr("turns ended: none\n"));
  EXPECT_THAT(FormatStatus(Busy()), HasSubstr("finished: none\n"));
}

TEST(StatusTextTest, AnAdaptiveSoftmaxHasItsShareOfSkippedClusters) {
  v1::GetServerStatusResponse status = Busy();
  for (const auto& [computed, skipped] :
       {std::pair(9, 1), std::pair(0, 10), std::pair(5, 5)}) {
    v1::SoftmaxTail* tail = status.add_softmax_tails();
    tail->set_computed(computed);
    tail->set_skipped(skipped);
  }
  EXPECT_THAT(FormatStatus(status),
              EndsWith("streams      70 tokens unread\n"
                       "softmax      53.3% of clusters skipped\n"));
}

TEST(StatusTextTest, APlainSoftmaxHasNone) {
  EXPECT_THAT(FormatStatus(Busy()), EndsWith("70 tokens unread\n"));
  v1::GetServerStatusResponse idle = Busy();
  idle.add_softmax_tails();  // a step without a wanted row
  EXPECT_THAT(FormatStatus(idle), EndsWith("70 tokens unread\n"));
}

TEST(StatusTextTest, AStatusHasItsMeanBatch) {
  v1::GetServerStatusResponse status = Busy();
  EXPECT_THAT(FormatStatus(status), HasSubstr("steps        7, mean 0.0"));
  status.set_rows_decode(10);
  status.set_steps_with_decode(4);
  EXPECT_THAT(FormatStatus(status), HasSubstr("steps        7, mean 2.5"));
}

TEST(FormatStatus, SaysWhatGuessesBrought) {
  v1::GetServerStatusResponse status = Busy();
  EXPECT_THAT(FormatStatus(status), Not(HasSubstr("guesses")));
  status.set_tokens_guessed(900);
  status.set_guesses_accepted(700);
  status.set_steps_saved(650);
  EXPECT_THAT(FormatStatus(status),
              HasSubstr("guesses      900, 700 accepted, 650 steps saved\n"));
}

TEST(FormatStatus, SaysWhatPromptsBeganAlike) {
  v1::GetServerStatusResponse status = Busy();
  EXPECT_THAT(FormatStatus(status), Not(HasSubstr("prefixes")));
  status.set_prefix_lookups(9);
  status.set_prefix_hits(7);
  status.set_tokens_cached(700);
  status.set_prefix_images(3);
  status.set_prefix_bytes(4096);
  EXPECT_THAT(FormatStatus(status),
              HasSubstr("prefixes     7 of 9 prompts found, 700 tokens cached; "
                        "3 images, 4096 bytes\n"));
}

TEST(FormatStatus, SaysWhatSessionsSurvive) {
  v1::GetServerStatusResponse status;
  EXPECT_THAT(FormatStatus(status), Not(HasSubstr("store")));
  v1::StoreStatus* store = status.mutable_store();
  store->set_state("serving");
  store->set_durability("turn");
  store->set_sessions(3);
  store->set_database_bytes(4096);
  store->set_image_bytes(100);
  EXPECT_THAT(FormatStatus(status),
              HasSubstr("store        serving, durable by turn; 3 sessions, "
                        "4096 bytes, images 100 bytes\n"));
}

TEST(FormatStatus, SaysWhatTheSelfTestAtLoadFound) {
  v1::GetServerStatusResponse status;
  EXPECT_THAT(FormatStatus(status), Not(HasSubstr("self-test")));
  v1::SelfTest* test = status.mutable_self_test();
  test->set_result("not_run");
  test->set_step("native-cuda");
  EXPECT_THAT(FormatStatus(status), HasSubstr("self-test    not run\n"));
  test->set_result("passed");
  test->set_seconds(0.126);
  EXPECT_THAT(FormatStatus(status),
              HasSubstr("self-test    passed in 0.13 s\n"));
  test->set_result("fell_back");
  test->set_objection("session 1, position 11: its numbers are not finite");
  EXPECT_THAT(FormatStatus(status),
              HasSubstr("self-test    fell_back after 0.13 s: native-cuda "
                        "refused, session 1, position 11: its numbers are not "
                        "finite\n"));
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

v1::GetServerStatusResponse Status(int64_t seconds, int64_t tokens,
                                   int64_t steps) {
  v1::GetServerStatusResponse status;
  status.mutable_uptime()->set_seconds(seconds);
  status.mutable_uptime()->set_nanos(500'000'000);
  status.set_tokens_delivered(tokens);
  status.set_steps(steps);
  return status;
}

TEST(StatusRatesTest, AreDifferencesOverTheServersOwnTime) {
  const StatusRates rates =
      RatesBetween(Status(10, 1000, 100), Status(14, 1600, 120));
  EXPECT_DOUBLE_EQ(rates.seconds, 4);
  EXPECT_DOUBLE_EQ(rates.tokens_per_second, 150);
  EXPECT_DOUBLE_EQ(rates.steps_per_second, 5);
}

TEST(StatusRatesTest, ParcelsOfASecondCount) {
  v1::GetServerStatusResponse after = Status(10, 1030, 100);
  after.mutable_uptime()->set_nanos(750'000'000);
  const StatusRates rates = RatesBetween(Status(10, 1000, 100), after);
  EXPECT_DOUBLE_EQ(rates.seconds, 0.25);
  EXPECT_DOUBLE_EQ(rates.tokens_per_second, 120);
}

TEST(StatusRatesTest, RowsOfEveryKindStandInSteps) {
  v1::GetServerStatusResponse before = Status(10, 0, 100);
  before.set_rows_decode(50);
  v1::GetServerStatusResponse after = Status(12, 0, 104);
  after.set_rows_decode(58);
  after.set_rows_prefill(20);
  after.set_rows_score(3);
  after.set_rows_rebuild(1);
  EXPECT_DOUBLE_EQ(RatesBetween(before, after).rows_per_step, 8);
}

TEST(StatusRatesTest, WithoutAStepThereIsNoMean) {
  const StatusRates rates =
      RatesBetween(Status(10, 1000, 100), Status(12, 1000, 100));
  EXPECT_EQ(rates.rows_per_step, 0);
  EXPECT_EQ(rates.steps_per_second, 0);
}

TEST(StatusRatesTest, TurnsThatEndedMeanwhileAreListed) {
  v1::GetServerStatusResponse before = Status(10, 0, 0);
  (*before.mutable_turns_finished())["OK"] = 5;
  (*before.mutable_turns_finished())["ABORTED"] = 2;
  v1::GetServerStatusResponse after = Status(12, 0, 0);
  (*after.mutable_turns_finished())["OK"] = 9;
  (*after.mutable_turns_finished())["ABORTED"] = 2;
  (*after.mutable_turns_finished())["CANCELLED"] = 1;
  EXPECT_THAT(RatesBetween(before, after).turns_ended,
              ElementsAre(Pair("CANCELLED", 1), Pair("OK", 4)));
}

TEST(StatusRatesTest, TheFirstLookIsSinceTheStart) {
  const StatusRates rates =
      RatesBetween(v1::GetServerStatusResponse(), Status(9, 950, 190));
  EXPECT_DOUBLE_EQ(rates.seconds, 9.5);
  EXPECT_DOUBLE_EQ(rates.tokens_per_second, 100);
  EXPECT_DOUBLE_EQ(rates.steps_per_second, 20);
}

TEST(StatusRatesTest, ARestartedServerStartsFromZero) {
  v1::GetServerStatusResponse before = Status(1000, 50'000, 900);
  (*before.mutable_turns_finished())["OK"] = 50;
  v1::GetServerStatusResponse after = Status(1, 150, 15);
  (*after.mutable_turns_finished())["OK"] = 2;
  const StatusRates rates = RatesBetween(before, after);
  EXPECT_DOUBLE_EQ(rates.seconds, 1.5);
  EXPECT_DOUBLE_EQ(rates.tokens_per_second, 100);
  EXPECT_THAT(rates.turns_ended, ElementsAre(Pair("OK", 2)));
}

TEST(StatusRatesTest, NoTimeNoRates) {
  const StatusRates rates =
      RatesBetween(Status(10, 1000, 100), Status(10, 1000, 100));
  EXPECT_EQ(rates.seconds, 0);
  EXPECT_EQ(rates.tokens_per_second, 0);
  EXPECT_THAT(rates.turns_ended, IsEmpty());
}

}  // namespace

}  // namespace txl::cli
