#include "client/cli/status_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace txl::cli {
namespace {

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
