#include "server/scheduler/session_slots.h"

#include <algorithm>
#include <random>

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

constexpr absl::Duration kNow = absl::Seconds(9);

TEST(SlotTable, ATurnsSessionStaysInItsSlotAfterTheTurn) {
  SlotTable table(2);
  table.Assign(1, 7);
  EXPECT_TRUE(table.at(1).running);
  table.Leave(1, 30, kNow);
  EXPECT_EQ(table.at(1).key, 7u);
  EXPECT_FALSE(table.at(1).running);
  EXPECT_EQ(table.at(1).rows, 30);
  EXPECT_EQ(table.at(1).last_use, kNow);
  EXPECT_EQ(table.used(), 1);
}

TEST(SlotTable, ASessionThatEndsWhileIdleLeavesAtOnce) {
  SlotTable table(2);
  table.Assign(0, 7);
  table.Leave(0, 30, kNow);
  table.EndSession(7);
  EXPECT_FALSE(table.at(0).key.has_value());
  EXPECT_EQ(table.used(), 0);
  EXPECT_EQ(table.CandidatesFor(8, kNow).free, 0);
  EXPECT_FALSE(table.CandidatesFor(8, kNow).idle_longest.has_value());
}

TEST(SlotTable, ASessionThatEndsDuringItsTurnLeavesWithIt) {
  SlotTable table(2);
  table.Assign(0, 7);
  table.EndSession(7);
  EXPECT_EQ(table.used(), 1);
  table.Leave(0, 30, kNow);
  EXPECT_EQ(table.used(), 0);
}

TEST(SlotTable, ASlotForgetsItsFormerSession) {
  SlotTable table(1);
  table.Assign(0, 7);
  table.SetImageCurrent(0, true);
  table.Leave(0, 30, kNow);
  table.Free(0);
  table.Assign(0, 8);
  EXPECT_FALSE(table.at(0).image_current);
  EXPECT_EQ(table.at(0).rows, 0);
  table.EndSession(7);
  EXPECT_EQ(table.at(0).key, 8u);
  EXPECT_FALSE(table.at(0).ended);
}

TEST(SlotTable, ASessionThatDoesNotMoveOutAfterAllIsAsItWas) {
  SlotTable table(1);
  table.Assign(0, 7);
  table.Leave(0, 30, kNow);
  table.Occupy(0, /*leaving=*/true);
  EXPECT_TRUE(table.CandidatesFor(7, kNow).own->leaving);
  EXPECT_FALSE(table.CandidatesFor(8, kNow).idle_longest.has_value());
  EXPECT_TRUE(table.CandidatesFor(8, kNow).running);
  table.Vacate(0);
  const SlotCandidates slots = table.CandidatesFor(7, 2 * kNow);
  EXPECT_FALSE(slots.own->leaving);
  EXPECT_FALSE(slots.running);
  EXPECT_EQ(slots.idle_longest->idle, kNow);
  EXPECT_EQ(table.at(0).rows, 30);
}

TEST(SlotTable, ASessionThatEndsWhileItMovesOutLeavesAFreeSlot) {
  SlotTable table(1);
  table.Assign(0, 7);
  table.Leave(0, 30, kNow);
  table.Occupy(0, /*leaving=*/true);
  table.EndSession(7);
  table.Vacate(0);
  EXPECT_EQ(table.used(), 0);
  EXPECT_EQ(table.CandidatesFor(8, kNow).free, 0);
}

// What CandidatesFor says, found by looking at every slot.
SlotCandidates Expected(const SlotTable& table, int32_t slots, uint64_t key,
                        absl::Duration now) {
  SlotCandidates expected;
  for (int32_t slot = 0; slot < slots; ++slot) {
    const SlotTable::Entry& entry = table.at(slot);
    if (!entry.key.has_value()) {
      if (!expected.free.has_value()) expected.free = slot;
      continue;
    }
    if (entry.key == key) expected.own = {slot, entry.leaving};
    if (entry.running) {
      expected.running = true;
    } else if (!expected.idle_longest.has_value() ||
               now - entry.last_use > expected.idle_longest->idle) {
      expected.idle_longest = {slot, now - entry.last_use};
    }
  }
  return expected;
}

void ExpectSame(const SlotCandidates& got, const SlotCandidates& expected) {
  ASSERT_EQ(got.own.has_value(), expected.own.has_value());
  if (got.own.has_value()) {
    EXPECT_EQ(got.own->slot, expected.own->slot);
    EXPECT_EQ(got.own->leaving, expected.own->leaving);
  }
  EXPECT_EQ(got.free, expected.free);
  ASSERT_EQ(got.idle_longest.has_value(), expected.idle_longest.has_value());
  if (got.idle_longest.has_value()) {
    EXPECT_EQ(got.idle_longest->slot, expected.idle_longest->slot);
    EXPECT_EQ(got.idle_longest->idle, expected.idle_longest->idle);
  }
  EXPECT_EQ(got.running, expected.running);
}

TEST(SlotTable, TheCandidatesAreThoseThatALookAtEverySlotWouldFind) {
  constexpr int32_t kSlots = 12;
  SlotTable table(kSlots);
  std::mt19937 random(7);
  uint64_t next_key = 1;
  for (int i = 0; i < 5000; ++i) {
    const auto slot = static_cast<int32_t>(random() % kSlots);
    const SlotTable::Entry entry = table.at(slot);
    // Few times, so that some are equal.
    const absl::Duration now = absl::Seconds(i / 10);
    if (!entry.key.has_value()) {
      table.Assign(slot, next_key++);
    } else if (random() % 8 == 0) {
      table.EndSession(*entry.key);
    } else if (!entry.running) {
      table.Occupy(slot, random() % 2 == 0);
    } else if (entry.leaving && random() % 2 == 0) {
      table.Free(slot);
    } else if (random() % 2 == 0) {
      table.Vacate(slot);
    } else {
      table.Leave(slot, i, now);
    }
    const uint64_t key =
        next_key - 1 - random() % std::min<uint64_t>(next_key, 15);
    ExpectSame(table.CandidatesFor(key, now),
               Expected(table, kSlots, key, now));
  }
}

}  // namespace

}  // namespace txl
