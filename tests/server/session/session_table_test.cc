// Which sessions are in memory, and which are idle.

#include "server/session/session_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fakes/fake_clock.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SessionTableTest : public ::testing::Test {
 protected:
  // What holds always once every session is idle or busy.
  void TearDown() override {
    const SessionCounts counts = table_.counts();
    EXPECT_EQ(counts.created + counts.loaded,
              counts.ended + counts.stored_away + counts.idle + counts.busy);
    EXPECT_EQ(counts.idle + counts.busy, table_.size());
  }

  RecordPtr Idle(const char* name, int64_t tokens = 1,
                 absl::Duration ttl = absl::Hours(1)) {
    RecordPtr record = table_.Create(name, ttl);
    record->token_ids.Append(std::vector<int32_t>(tokens, 7));
    table_.BecomeIdle(*record);
    return record;
  }
  // One of the journal, all of it on stable storage.
  RecordPtr Stored(const char* name) {
    RecordPtr record = table_.Create(name, absl::Hours(1));
    record->journaled = true;
    table_.BecomeIdle(*record);
    return record;
  }
  static std::vector<std::string> IdsOf(const std::vector<RecordPtr>& records) {
    std::vector<std::string> ids;
    for (const RecordPtr& record : records) ids.push_back(record->name.id());
    return ids;
  }

  FakeClock clock_;
  SessionTable table_{&clock_};
};

TEST_F(SessionTableTest, ASessionIsFoundByKeyAndByName) {
  const RecordPtr a = Idle("a");
  EXPECT_EQ(table_.Named("a"), a);
  EXPECT_EQ(table_.OfKey(a->key), a);
  EXPECT_EQ(table_.Named("b"), nullptr);
  EXPECT_EQ(table_.OfKey(a->key + 1), nullptr);
}

TEST_F(SessionTableTest, ATemporarySessionHasNoNameToBeFoundBy) {
  const RecordPtr record = table_.Create(SessionName(), absl::Hours(1));
  table_.BecomeBusy(*record);
  EXPECT_EQ(table_.temporary(), 1);
  EXPECT_EQ(table_.Named(SessionName()), nullptr);
  EXPECT_EQ(table_.OfKey(record->key), record);
  table_.End(record);
  EXPECT_EQ(table_.temporary(), 0);
}

TEST_F(SessionTableTest, NamesFollowEachOtherWithinTheirTenant) {
  for (const char* name : {"c", "a", "b"}) Idle(name);
  const RecordPtr other =
      table_.Create(SessionName("zoe", "d"), absl::Hours(1));
  table_.BecomeIdle(*other);
  EXPECT_THAT(IdsOf(table_.NamedAfter("", 9)), ElementsAre("a", "b", "c"));
  EXPECT_THAT(IdsOf(table_.NamedAfter("a", 1)), ElementsAre("b"));
  EXPECT_THAT(table_.NamedAfter("c", 9), IsEmpty());
}

TEST_F(SessionTableTest, OnlyAnIdleSessionExpiresTheEarliestFirst) {
  const RecordPtr late = Idle("late", 1, absl::Seconds(9));
  const RecordPtr early = Idle("early", 1, absl::Seconds(5));
  EXPECT_EQ(table_.Expired(), nullptr);
  clock_.Advance(absl::Seconds(9));
  EXPECT_EQ(table_.Expired(), early);
  table_.BecomeBusy(*early);
  EXPECT_EQ(table_.Expired(), late);
  table_.End(late);
  EXPECT_EQ(table_.Expired(), nullptr);
}

TEST_F(SessionTableTest, BecomingIdleIsAUseAndParkingIsNone) {
  const RecordPtr record = Idle("a", 1, absl::Seconds(5));
  table_.BecomeBusy(*record);
  clock_.Advance(absl::Seconds(4));
  table_.BecomeIdle(*record);
  clock_.Advance(absl::Seconds(4));
  EXPECT_EQ(table_.Expired(), nullptr);
  table_.BecomeBusy(*record);
  clock_.Advance(absl::Seconds(1));
  table_.Park(*record);
  EXPECT_EQ(table_.Expired(), record);
}

TEST_F(SessionTableTest, TheEmptySessionUnusedForLongestComesFirst) {
  Idle("full", 3);
  const RecordPtr first = Idle("first", 0);
  clock_.Advance(absl::Seconds(2));
  const RecordPtr second = Idle("second", 0);
  EXPECT_EQ(table_.empty(), 2);
  EXPECT_EQ(table_.OldestEmpty(absl::Seconds(2)), first);
  table_.BecomeBusy(*first);
  EXPECT_EQ(table_.OldestEmpty(absl::Seconds(2)), nullptr);
  EXPECT_EQ(table_.OldestEmpty(absl::ZeroDuration()), second);
}

TEST_F(SessionTableTest, WhatMayLeaveMemoryIsStoredUnusedAndInNoSlot) {
  Idle("not stored");
  const RecordPtr in_slot = Stored("slot");
  const RecordPtr waits = Stored("waits");
  const RecordPtr wanted = Stored("wanted");
  const RecordPtr free = Stored("free");
  table_.SetInSlot(*in_slot, true);
  waits->durable.Entered(/*entry=*/8, /*position=*/0, /*durable=*/0);
  clock_.Advance(absl::Seconds(5));
  wanted->loaded = clock_.Monotonic();
  EXPECT_EQ(table_.OldestAway(absl::Seconds(6), 7), nullptr);
  EXPECT_EQ(table_.OldestAway(absl::Seconds(5), 7), free);
  EXPECT_EQ(table_.OldestAway(absl::Seconds(5), 8), waits);
  table_.SetInSlot(*in_slot, false);
  EXPECT_EQ(table_.OldestAway(absl::Seconds(5), 7), in_slot);
  table_.StoreAway(in_slot);
  EXPECT_EQ(table_.OldestAway(absl::Seconds(5), 7), free);
}

TEST_F(SessionTableTest, ALoadedSessionIsAsOldAsItsHeadSays) {
  StoredHead head;
  head.session_id = "a";
  head.ttl = absl::Seconds(9);
  head.create_time = clock_.Now() - absl::Hours(1);
  head.last_use = clock_.Now() - absl::Seconds(4);
  const RecordPtr record = table_.Load(head);
  table_.Park(*record);
  EXPECT_EQ(record->create_time, head.create_time);
  EXPECT_EQ(record->last_use_time, head.last_use);
  EXPECT_EQ(table_.counts().loaded, 1);
  clock_.Advance(absl::Seconds(4));
  EXPECT_EQ(table_.Expired(), nullptr);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(table_.Expired(), record);
}

TEST_F(SessionTableTest, AUseInTheFutureCountsAsOneNow) {
  StoredHead head;
  head.session_id = "a";
  head.ttl = absl::Seconds(9);
  head.last_use = clock_.Now() + absl::Hours(1);
  const RecordPtr record = table_.Load(head);
  table_.Park(*record);
  EXPECT_EQ(record->last_use, clock_.Monotonic());
}

TEST_F(SessionTableTest, AnotherKeyLeavesTheSlotOfTheFirstOne) {
  const RecordPtr record = Idle("a");
  const uint64_t key = record->key;
  table_.SetInSlot(*record, true);
  table_.BecomeBusy(*record);
  table_.ChangeKey(record);
  EXPECT_NE(record->key, key);
  EXPECT_EQ(table_.OfKey(key), nullptr);
  EXPECT_EQ(table_.OfKey(record->key), record);
  EXPECT_FALSE(record->in_slot);
  EXPECT_THAT(table_.in_slot(), IsEmpty());
  EXPECT_THAT(table_.TakeEndedKeys(), ElementsAre(key));
  table_.BecomeIdle(*record);
}

TEST_F(SessionTableTest, ANameThatWasGivenUpMayBeUsedAgain) {
  const RecordPtr old = Idle("a");
  table_.BecomeBusy(*old);
  table_.Unname(*old);
  EXPECT_EQ(table_.report().deleted, 1);
  const RecordPtr young = Idle("a");
  table_.End(old);
  EXPECT_EQ(table_.Named("a"), young);
  EXPECT_EQ(table_.report().deleted, 0);
}

TEST_F(SessionTableTest, WhatLeavesIsInNoOrderAndSaysItsKeyOnce) {
  const RecordPtr record = Stored("a");
  table_.SetInSlot(*record, true);
  table_.BecomeBusy(*record);
  table_.StoreAway(record);
  const SessionCounts counts = table_.counts();
  EXPECT_EQ(counts.stored_away, 1);
  EXPECT_EQ(counts.ended, 0);
  EXPECT_EQ(counts.busy, 0);
  EXPECT_THAT(table_.in_slot(), IsEmpty());
  EXPECT_THAT(table_.TakeEndedKeys(), ElementsAre(record->key));
  EXPECT_THAT(table_.TakeEndedKeys(), IsEmpty());
}

TEST_F(SessionTableTest, TheReportCountsEveryKind) {
  Idle("empty", 0);
  table_.SetInSlot(*Stored("slot"), true);
  Stored("away");
  const RecordPtr temporary = table_.Create(SessionName(), absl::Hours(1));
  table_.BecomeBusy(*temporary);
  const StoreReport report = table_.report();
  EXPECT_EQ(report.named, 3);
  EXPECT_EQ(report.temporary, 1);
  EXPECT_EQ(report.deleted, 0);
  EXPECT_EQ(report.empty, 3);
  EXPECT_EQ(report.away, 1);
  EXPECT_EQ(report.in_slot, 1);
}

}  // namespace
}  // namespace txl
