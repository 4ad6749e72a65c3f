#include "client/fleet/report.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/client/fleet/small_cell.h"

namespace txl::fleet {
namespace {

using testing::HasSubstr;

FleetOptions TenCells() {
  FleetOptions fleet;
  fleet.cell = SmallCell();
  fleet.cell.mix.conversations_per_second = 20;
  fleet.cell.mix.answer_tokens = Lengths("50");
  fleet.cell.seconds = 100;
  fleet.cells = 10;
  fleet.sample = 2;
  return fleet;
}

TEST(Report, CountsTheSampleAndRatesTheFleet) {
  const absl::StatusOr<FleetResult> result = SimulateFleet(TenCells());
  ASSERT_TRUE(result.ok());
  const nlohmann::ordered_json json = ToJson(*result);
  EXPECT_EQ(json["schema"], kSchema);
  EXPECT_EQ(json["cells"], 10);
  // 20 of each cell in a second.
  EXPECT_NEAR(json["turns_per_second"].get<double>(), 200, 10);
  EXPECT_NEAR(json["tokens_per_second"].get<double>(), 200 * 50, 500);
  EXPECT_NEAR(json["turns"]["ended"].get<double>(), 2 * 20 * 100, 300);
  // Of 49 ms each, on one server.
  EXPECT_NEAR(json["streams_of_a_server"].get<double>(), 20 * 0.049, 0.1);
  EXPECT_EQ(json["residency"]["rebuilt"], 1.0);
  EXPECT_EQ(json["takeover_seconds"]["count"], 0);
  EXPECT_NEAR(json["store"]["commands_per_turn"].get<double>(), 3, 0.01);
}

TEST(Report, HasCellsThatAreNotAlike) {
  FleetOptions fleet = TenCells();
  const int64_t two = SimulateFleet(fleet)->figures.turns_due;
  fleet.sample = 1;
  const int64_t one = SimulateFleet(fleet)->figures.turns_due;
  EXPECT_NE(two, 2 * one);
}

TEST(Report, SaysTheSameToPeople) {
  const absl::StatusOr<FleetResult> result = SimulateFleet(TenCells());
  ASSERT_TRUE(result.ok());
  const std::string text = ToText(*result);
  EXPECT_THAT(text, HasSubstr("10 cells of 1 servers"));
  EXPECT_THAT(text, HasSubstr("2 simulated for 100 s"));
  EXPECT_THAT(text, HasSubstr("time to first token"));
  EXPECT_THAT(text, HasSubstr("3.0 commands a turn"));
  EXPECT_THAT(text, HasSubstr("slots"));
}

TEST(SimulateFleet, RefusesMoreCellsThanThereAre) {
  FleetOptions fleet = TenCells();
  fleet.sample = 11;
  EXPECT_FALSE(SimulateFleet(fleet).ok());
}

}  // namespace
}  // namespace txl::fleet
