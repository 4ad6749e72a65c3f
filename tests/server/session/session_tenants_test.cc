// SessionStore: what tenants see of each other, which is nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/session/session_import.h"
#include "server/session/session_store.h"
#include "tests/fakes/fake_clock.h"

namespace txl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class SessionTenants : public testing::Test {
 protected:
  SessionTenants() : store_(SessionStoreOptions(), &clock_) {
    EXPECT_TRUE(store_.Create(alices_, std::nullopt).ok());
  }
  std::vector<std::string> Listed(const std::string& tenant, int size = 0) {
    std::vector<std::string> ids;
    std::string token;
    do {
      const SessionPage page = *store_.List(tenant, size, token);
      for (const SessionInfo& info : page.sessions) {
        ids.push_back(info.session_id);
      }
      token = page.next_page_token;
    } while (!token.empty());
    return ids;
  }

  FakeClock clock_;
  SessionStore store_;
  const SessionName alices_{"alice", "s"};
  const SessionName bobs_{"bob", "s"};
  const SessionName nobodys_{"bob", "never-was"};
};

// Code, text and payload: absl::Status compares all of them.
TEST_F(SessionTenants, AnothersSessionIsAsUnknownAsOneThatNeverWas) {
  EXPECT_EQ(store_.Get(bobs_).status(), store_.Get(nobodys_).status());
  EXPECT_EQ(store_.GetTokens(bobs_, 0, 1).status(),
            store_.GetTokens(nobodys_, 0, 1).status());
  EXPECT_EQ(store_.Delete(bobs_), store_.Delete(nobodys_));
  EXPECT_EQ(store_.Acquire(bobs_).status(), store_.Acquire(nobodys_).status());
  EXPECT_EQ(store_.Snapshot(bobs_).status(),
            store_.Snapshot(nobodys_).status());
  EXPECT_EQ(store_.Fork({.session = bobs_}).status(),
            store_.Fork({.session = nobodys_}).status());
  EXPECT_EQ(store_.Rewind({.session = bobs_}).status(),
            store_.Rewind({.session = nobodys_}).status());
  EXPECT_FALSE(store_.Get(bobs_).ok());
  EXPECT_TRUE(store_.Get(alices_).ok()) << "hers is as it was";
}

TEST_F(SessionTenants, EachMayUseTheSameId) {
  ASSERT_TRUE(store_.Create(bobs_, std::nullopt).ok());
  store_.Acquire(alices_)->Append({1, 2, 3});
  EXPECT_EQ(store_.Get(alices_)->position, 3);
  EXPECT_EQ(store_.Get(bobs_)->position, 0);
  EXPECT_EQ(store_.Get(bobs_)->session_id, "s");
  ASSERT_TRUE(store_.Delete(bobs_).ok());
  EXPECT_EQ(store_.Get(alices_)->position, 3);
}

TEST_F(SessionTenants, WhatIsMadeOfASessionIsItsTenants) {
  ASSERT_TRUE(
      store_.Fork({.session = alices_, .new_session_id = "branch"}).ok());
  EXPECT_TRUE(store_.Get({"alice", "branch"}).ok());
  EXPECT_FALSE(store_.Get({"bob", "branch"}).ok());
  EXPECT_FALSE(store_.Get("branch").ok());
  const std::string made = store_.Create({"bob", ""}, std::nullopt)->session_id;
  EXPECT_TRUE(store_.Get({"bob", made}).ok());
  EXPECT_FALSE(store_.Get({"alice", made}).ok());
  const std::string imported =
      store_.Import({"bob", ""}, std::nullopt, ImportedSession())->session_id;
  EXPECT_TRUE(store_.Get({"bob", imported}).ok());
  EXPECT_FALSE(store_.Get({"alice", imported}).ok());
}

TEST_F(SessionTenants, ListsShowOnesOwnAlone) {
  ASSERT_TRUE(store_.Create({"alice", "t"}, std::nullopt).ok());
  ASSERT_TRUE(store_.Create({"bob", "r"}, std::nullopt).ok());
  ASSERT_TRUE(store_.Create("default-s", std::nullopt).ok());
  for (const int size : {0, 1, 2}) {
    EXPECT_THAT(Listed("alice", size), ElementsAre("s", "t")) << size;
    EXPECT_THAT(Listed("bob", size), ElementsAre("r")) << size;
    EXPECT_THAT(Listed("default", size), ElementsAre("default-s")) << size;
    EXPECT_THAT(Listed("carol", size), IsEmpty()) << size;
  }
}

TEST_F(SessionTenants, APageTokenOfAnotherShowsOnesOwn) {
  ASSERT_TRUE(store_.Create({"alice", "t"}, std::nullopt).ok());
  ASSERT_TRUE(store_.Create({"bob", "z"}, std::nullopt).ok());
  const std::string token = store_.List("alice", 1, "")->next_page_token;
  const SessionPage page = *store_.List("bob", 10, token);
  ASSERT_EQ(page.sessions.size(), 1u);
  EXPECT_EQ(page.sessions[0].session_id, "z");
}

TEST_F(SessionTenants, ThatASessionHasExpiredIsToldToItsOwnerAlone) {
  ASSERT_TRUE(store_.Create({"alice", "short"}, absl::Seconds(1)).ok());
  clock_.Advance(absl::Seconds(2));
  const absl::Status to_alice = store_.Get({"alice", "short"}).status();
  EXPECT_NE(to_alice, store_.Get(nobodys_).status());
  EXPECT_EQ(store_.Get({"bob", "short"}).status(),
            store_.Get(nobodys_).status());
}

}  // namespace
}  // namespace txl
