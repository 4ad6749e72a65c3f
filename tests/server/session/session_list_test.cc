#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/session/session_name.h"
#include "server/session/session_store.h"
#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SessionListTest : public StoreTest {
 protected:
  void CreateAll(const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      ASSERT_TRUE(store_->Create(SessionName::OfDefaultTenant(id), {}).ok());
    }
  }

  static std::vector<std::string> Ids(const SessionPage& page) {
    std::vector<std::string> ids;
    for (const SessionInfo& info : page.sessions) {
      ids.push_back(info.session_id);
    }
    return ids;
  }
};

TEST_F(SessionListTest, AnEmptyStoreHasOneEmptyPage) {
  const absl::StatusOr<SessionPage> page =
      MakeStore().List(kDefaultTenant, 0, "");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->sessions, IsEmpty());
  EXPECT_EQ(page->next_page_token, "");
}

TEST_F(SessionListTest, SessionsComeByIdInByteOrder) {
  SessionStore& store = MakeStore();
  CreateAll({"b", "_", "a1", "B", "a", "0", "-"});
  EXPECT_THAT(Ids(*store.List(kDefaultTenant, 0, "")),
              ElementsAre("-", "0", "B", "_", "a", "a1", "b"));
}

TEST_F(SessionListTest, PagesFollowEachOtherWithoutGapOrOverlap) {
  SessionStore& store = MakeStore();
  CreateAll({"a", "b", "c", "d", "e"});
  const SessionPage first = *store.List(kDefaultTenant, 2, "");
  EXPECT_THAT(Ids(first), ElementsAre("a", "b"));
  const SessionPage second =
      *store.List(kDefaultTenant, 2, first.next_page_token);
  EXPECT_THAT(Ids(second), ElementsAre("c", "d"));
  const SessionPage third =
      *store.List(kDefaultTenant, 2, second.next_page_token);
  EXPECT_THAT(Ids(third), ElementsAre("e"));
  EXPECT_EQ(third.next_page_token, "");
}

TEST_F(SessionListTest, AFullLastPageHasNoNext) {
  SessionStore& store = MakeStore();
  CreateAll({"a", "b"});
  EXPECT_EQ(store.List(kDefaultTenant, 2, "")->next_page_token, "");
}

TEST_F(SessionListTest, ChangesBetweenPagesDoNotDisturbTheRest) {
  SessionStore& store = MakeStore();
  CreateAll({"a", "b", "c", "d"});
  const std::string next = store.List(kDefaultTenant, 2, "")->next_page_token;
  ASSERT_TRUE(store.Delete("b").ok());  // the border itself
  ASSERT_TRUE(store.Delete("c").ok());
  CreateAll({"aa", "dd"});
  EXPECT_THAT(Ids(*store.List(kDefaultTenant, 2, next)),
              ElementsAre("d", "dd"));
}

TEST_F(SessionListTest, ATokenPastTheLastSessionGivesAnEmptyPage) {
  SessionStore& store = MakeStore();
  CreateAll({"a"});
  const absl::StatusOr<SessionPage> page =
      store.List(kDefaultTenant, 0, EncodePageToken("z"));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->sessions, IsEmpty());
  EXPECT_EQ(page->next_page_token, "");
}

TEST_F(SessionListTest, ThePageSizeIsAHundredByDefaultAndAtMostAThousand) {
  SessionStore& store = MakeStore();
  for (int i = 0; i < 1001; ++i) {
    ASSERT_TRUE(
        store.Create(SessionName::OfDefaultTenant(absl::StrCat("s", i)), {})
            .ok());
  }
  EXPECT_EQ(store.List(kDefaultTenant, 0, "")->sessions.size(), 100u);
  EXPECT_EQ(store.List(kDefaultTenant, 1, "")->sessions.size(), 1u);
  const SessionPage page = *store.List(kDefaultTenant, 1000, "");
  EXPECT_EQ(page.sessions.size(), 1000u);
  std::vector<std::string> ids = Ids(page);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  EXPECT_EQ(store.List(kDefaultTenant, 1001, "")->sessions.size(), 1000u);
  EXPECT_EQ(store.List(kDefaultTenant, 100'000, "")->sessions.size(), 1000u);
  EXPECT_EQ(
      store.List(kDefaultTenant, 1000, page.next_page_token)->sessions.size(),
      1u);
}

TEST_F(SessionListTest, BadArgumentsAreRefusedByName) {
  SessionStore& store = MakeStore();
  EXPECT_EQ(Refusal(store.List(kDefaultTenant, -1, "")),
            "INVALID_ARGUMENT FIELD_INVALID page_size");
  EXPECT_EQ(Refusal(store.List(kDefaultTenant, 0, "made up")),
            "INVALID_ARGUMENT FIELD_INVALID page_token");
}

TEST_F(SessionListTest, BusySessionsAreShownAsSuch) {
  SessionStore& store = MakeStore();
  CreateAll({"a", "b"});
  const SessionLease lease = Lease("b");
  const SessionPage page = *store.List(kDefaultTenant, 0, "");
  EXPECT_EQ(page.sessions[0].state, SessionState::kIdle);
  EXPECT_EQ(page.sessions[1].state, SessionState::kBusy);
}

TEST_F(SessionListTest, TemporaryDeletedAndExpiredSessionsAreNotShown) {
  SessionStore& store = MakeStore();
  ASSERT_TRUE(store.Create("expired", absl::Seconds(1)).ok());
  CreateAll({"a", "deleted", "deleted-busy"});
  const SessionLease busy = Lease("deleted-busy");
  const absl::StatusOr<SessionLease> temporary = store.AcquireTemporary();
  ASSERT_TRUE(temporary.ok());
  ASSERT_TRUE(store.Delete("deleted").ok());
  ASSERT_TRUE(store.Delete("deleted-busy").ok());
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(Ids(*store.List(kDefaultTenant, 0, "")), ElementsAre("a"));
}

}  // namespace
}  // namespace txl
