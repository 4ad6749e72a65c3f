// What the store tells of itself.
#include <gmock/gmock.h>

#include <string>

#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class SessionReportTest : public StoreTest {
 protected:
  // A session of so many tokens in a slot; its key.
  uint64_t InSlot(const std::string& id, int tokens) {
    EXPECT_TRUE(
        store_->Create(SessionName::OfDefaultTenant(id), std::nullopt).ok());
    SessionLease lease = Lease(id);
    EXPECT_TRUE(lease.Reserve(tokens).ok());
    lease.Append(std::vector<int32_t>(tokens, 1));
    store_->SetInSlot(lease.key(), true);
    return lease.key();
  }
};

TEST_F(SessionReportTest, CountsSessionsByWhatTheyAre) {
  MakeStore();
  InSlot("full", 5);
  ASSERT_TRUE(store_->Create("empty", std::nullopt).ok());
  ASSERT_TRUE(store_->Create("deleted", std::nullopt).ok());
  const SessionLease deleted = Lease("deleted");
  ASSERT_TRUE(store_->Delete("deleted").ok());
  const auto temporary = store_->AcquireTemporary();
  const StoreReport report = store_->Report(10);
  EXPECT_EQ(report.named, 2);
  EXPECT_EQ(report.temporary, 1);
  EXPECT_EQ(report.deleted, 1);
  EXPECT_EQ(report.empty, 1);
  EXPECT_EQ(report.away, 0);
  EXPECT_EQ(report.in_slot, 1);
}

TEST_F(SessionReportTest, HasTheSessionsInSlots) {
  MakeStore();
  const uint64_t key = InSlot("s", 5);
  ASSERT_TRUE(store_->PutImage(key, ImageOfBytes(8)).ok());
  clock_.Advance(absl::Seconds(3));
  const StoreReport report = store_->Report(10);
  ASSERT_THAT(report.sessions, SizeIs(1));
  const SessionReport& session = report.sessions[0];
  EXPECT_EQ(session.key, key);
  EXPECT_EQ(session.name, SessionName::OfDefaultTenant("s"));
  EXPECT_FALSE(session.busy);
  EXPECT_EQ(session.position, 5);
  EXPECT_TRUE(session.has_image);
  EXPECT_EQ(session.idle, absl::Seconds(3));
  const SessionLease lease = Lease("s");
  EXPECT_TRUE(store_->Report(10).sessions[0].busy);
}

TEST_F(SessionReportTest, ListsNoMoreThanWasAskedFor) {
  MakeStore();
  for (const char* id : {"a", "b", "c"}) InSlot(id, 2);
  EXPECT_THAT(store_->Report(2).sessions, SizeIs(2));
  EXPECT_EQ(store_->Report(2).in_slot, 3);
}

TEST_F(SessionReportTest, ASessionSaysWhetherItIsInASlot) {
  MakeStore();
  const uint64_t key = InSlot("s", 5);
  EXPECT_TRUE(store_->Get("s")->in_slot);
  store_->SetInSlot(key, false);
  EXPECT_FALSE(store_->Get("s")->in_slot);
  EXPECT_THAT(store_->Report(10).sessions, IsEmpty());
}

}  // namespace

}  // namespace txl
