#include "server/scheduler/slot_policy.h"

#include <vector>

#include "gtest/gtest.h"

namespace txl {
namespace {

using Kind = SlotChoice::Kind;

SlotView Free() { return {}; }
SlotView Running(uint64_t key) {
  return {.key = key, .running = true, .idle = absl::ZeroDuration()};
}
SlotView Idle(uint64_t key, int seconds) {
  return {.key = key, .running = false, .idle = absl::Seconds(seconds)};
}

void ExpectChoice(const std::vector<SlotView>& slots, int min_idle_seconds,
                  Kind kind, int slot) {
  const SlotChoice choice =
      ChooseSlot(slots, 100, absl::Seconds(min_idle_seconds));
  EXPECT_EQ(choice.kind, kind);
  EXPECT_EQ(choice.slot, slot);
}

TEST(SlotPolicy, ASessionGoesToItsOwnSlotFirst) {
  ExpectChoice({Free(), Idle(3, 50), Idle(100, 0)}, 10, Kind::kResident, 2);
}

TEST(SlotPolicy, AFreeSlotComesBeforeMovingAnotherSessionOut) {
  ExpectChoice({Idle(3, 50), Free(), Free()}, 0, Kind::kFree, 1);
}

TEST(SlotPolicy, TheSessionIdleLongestIsMovedOut) {
  ExpectChoice({Idle(3, 50), Idle(4, 70), Running(5), Idle(6, 60)}, 0,
               Kind::kEvict, 1);
}

TEST(SlotPolicy, ARunningTurnIsNeverMovedOut) {
  ExpectChoice({Running(3), Running(4)}, 0, Kind::kWait, -1);
}

TEST(SlotPolicy, ASessionThatMovesOutWaitsUntilItHas) {
  SlotView leaving = Running(100);
  leaving.leaving = true;
  ExpectChoice({Free(), leaving}, 0, Kind::kWait, -1);
  leaving.key = 3;
  ExpectChoice({leaving}, 0, Kind::kWait, -1);
}

TEST(SlotPolicy, ASessionIdleForLessThanTheMinimumIsNotMovedOut) {
  ExpectChoice({Idle(3, 4), Idle(4, 5)}, 5, Kind::kEvict, 1);
  ExpectChoice({Idle(3, 4), Idle(4, 4)}, 5, Kind::kRefuse, -1);
}

TEST(SlotPolicy, WhereATurnStillRunsTheNextOneWaitsForIt) {
  ExpectChoice({Idle(3, 4), Running(4)}, 5, Kind::kWait, -1);
}

TEST(SlotPolicy, JustEndedTurnsMayBeMovedOutWithoutAMinimum) {
  ExpectChoice({Idle(3, 0)}, 0, Kind::kEvict, 0);
}

}  // namespace
}  // namespace txl
