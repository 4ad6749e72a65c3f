// Sessions on their way between memory and the store.

#include <gtest/gtest.h>

#include <vector>

#include "server/session/session_table.h"

namespace txl {
namespace {

TEST(AwaySessionsTest, OnlyTheFirstWhoAwaitsASessionBringsIt) {
  AwaySessions away(false);
  std::vector<int> told;
  EXPECT_TRUE(away.Await("a", [&](const absl::Status&) { told.push_back(1); }));
  EXPECT_FALSE(
      away.Await("a", [&](const absl::Status&) { told.push_back(2); }));
  EXPECT_TRUE(away.Await("b", [](const absl::Status&) {}));
  const AwaySessions::Waited waited = away.TakeWaiting("a");
  EXPECT_FALSE(waited.again);
  for (const auto& then : waited.now) then(absl::OkStatus());
  EXPECT_EQ(told, (std::vector<int>{1, 2}));
  EXPECT_TRUE(away.Await("a", [](const absl::Status&) {}));
}

// Another server may have changed the session since the first one's read.
TEST(AwaySessionsTest, WhoComesDuringASharedReadWaitsForTheNext) {
  AwaySessions away(true);
  std::vector<int> told;
  const auto tell = [&told](int who) {
    return [&told, who](const absl::Status&) { told.push_back(who); };
  };
  EXPECT_TRUE(away.Await("a", tell(1)));
  EXPECT_FALSE(away.Await("a", tell(2)));
  EXPECT_FALSE(away.Await("a", tell(3)));
  const auto end_read = [&] {
    const AwaySessions::Waited waited = away.TakeWaiting("a");
    for (const auto& then : waited.now) then(absl::OkStatus());
    return waited.again;
  };
  EXPECT_TRUE(end_read());
  EXPECT_EQ(told, (std::vector<int>{1}));
  EXPECT_FALSE(away.Await("a", tell(4)));  // the second read has begun
  EXPECT_TRUE(end_read());
  EXPECT_EQ(told, (std::vector<int>{1, 2, 3}));
  EXPECT_FALSE(away.IsSettled("a", 0));
  EXPECT_FALSE(end_read());
  EXPECT_EQ(told, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_TRUE(away.IsSettled("a", 0));
}

TEST(AwaySessionsTest, WhatIsComingIsNotSettled) {
  AwaySessions away(false);
  EXPECT_TRUE(away.IsSettled("a", 0));
  away.Await("a", [](const absl::Status&) {});
  EXPECT_FALSE(away.IsSettled("a", 9));
  EXPECT_TRUE(away.IsSettled("b", 9));
  away.TakeWaiting("a");
  EXPECT_TRUE(away.IsSettled("a", 9));
}

TEST(AwaySessionsTest, WhatIsRemovedIsSettledOnceThatIsOnStableStorage) {
  AwaySessions away(false);
  away.Removed("a", 5);
  EXPECT_FALSE(away.IsSettled("a", 4));
  EXPECT_TRUE(away.IsSettled("a", 5));
  away.Removed("a", 7);  // again, under the same name
  EXPECT_FALSE(away.IsSettled("a", 6));
}

TEST(AwaySessionsTest, RemovalsThatAreStoredAreForgotten) {
  AwaySessions away(false);
  away.Removed("a", 5);
  away.Removed("b", 6);
  away.Forget(5);
  EXPECT_TRUE(away.IsSettled("a", 0));
  EXPECT_FALSE(away.IsSettled("b", 5));
}

}  // namespace
}  // namespace txl
