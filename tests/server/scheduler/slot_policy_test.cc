#include "server/scheduler/slot_policy.h"

#include "gtest/gtest.h"

namespace txl {
namespace {

using Kind = SlotChoice::Kind;

SlotCandidates Slots() {
  return {.own = std::nullopt,
          .free = std::nullopt,
          .idle_longest = std::nullopt,
          .running = false,
          .parked = std::nullopt};
}
SlotCandidates::Own Own(int slot, bool leaving = false) {
  return {slot, leaving};
}
SlotCandidates::Idle Idle(int slot, int seconds) {
  return {slot, absl::Seconds(seconds)};
}

void ExpectChoice(const SlotCandidates& slots, int min_idle_seconds, Kind kind,
                  int slot) {
  const SlotChoice choice = ChooseSlot(slots, absl::Seconds(min_idle_seconds));
  EXPECT_EQ(choice.kind, kind);
  EXPECT_EQ(choice.slot, slot);
}

TEST(SlotPolicy, ASessionGoesToItsOwnSlotFirst) {
  SlotCandidates slots = Slots();
  slots.own = Own(2);
  slots.free = 0;
  slots.idle_longest = Idle(1, 50);
  ExpectChoice(slots, 10, Kind::kResident, 2);
}

TEST(SlotPolicy, AFreeSlotComesBeforeMovingAnotherSessionOut) {
  SlotCandidates slots = Slots();
  slots.free = 1;
  slots.idle_longest = Idle(0, 50);
  ExpectChoice(slots, 0, Kind::kFree, 1);
}

TEST(SlotPolicy, TheSessionIdleLongestIsMovedOutEvenIfItJustEndedItsTurn) {
  SlotCandidates slots = Slots();
  slots.idle_longest = Idle(1, 70);
  slots.running = true;
  ExpectChoice(slots, 0, Kind::kEvict, 1);
  slots.idle_longest = Idle(1, 0);
  ExpectChoice(slots, 0, Kind::kEvict, 1);
}

TEST(SlotPolicy, ARunningTurnIsNeverMovedOut) {
  SlotCandidates slots = Slots();
  slots.running = true;
  ExpectChoice(slots, 0, Kind::kWait, -1);
}

TEST(SlotPolicy, ASessionThatMovesOutWaitsUntilItHas) {
  SlotCandidates slots = Slots();
  slots.own = Own(1, /*leaving=*/true);
  slots.free = 0;
  slots.running = true;
  ExpectChoice(slots, 0, Kind::kWait, -1);
}

TEST(SlotPolicy, ASessionIdleForLessThanTheMinimumIsNotMovedOut) {
  SlotCandidates slots = Slots();
  slots.idle_longest = Idle(1, 5);
  ExpectChoice(slots, 5, Kind::kEvict, 1);
  slots.idle_longest = Idle(1, 4);
  ExpectChoice(slots, 5, Kind::kRefuse, -1);
}

TEST(SlotPolicy, WhereATurnStillRunsTheNextOneWaitsForIt) {
  SlotCandidates slots = Slots();
  slots.idle_longest = Idle(1, 4);
  slots.running = true;
  ExpectChoice(slots, 5, Kind::kWait, -1);
}

TEST(SlotPolicy, AParkedTurnGivesItsSlotUpWhereNoSessionIsIdle) {
  SlotCandidates slots = Slots();
  slots.running = true;
  slots.parked = Idle(3, 5);
  ExpectChoice(slots, 5, Kind::kYield, 3);
  ExpectChoice(slots, 6, Kind::kWait, -1);
  slots.idle_longest = Idle(1, 0);
  ExpectChoice(slots, 0, Kind::kEvict, 1);
  ExpectChoice(slots, 5, Kind::kYield, 3);
}

TEST(SlotPolicy, AParkedTurnStaysWhereTheSessionOfTheNewOneMovesOut) {
  SlotCandidates slots = Slots();
  slots.own = Own(1, /*leaving=*/true);
  slots.running = true;
  slots.parked = Idle(3, 5);
  ExpectChoice(slots, 0, Kind::kWait, -1);
}

}  // namespace
}  // namespace txl
