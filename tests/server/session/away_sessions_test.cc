// Sessions on their way between memory and the store.

#include <gtest/gtest.h>

#include <vector>

#include "server/session/session_table.h"

namespace txl {
namespace {

TEST(AwaySessionsTest, OnlyTheFirstWhoAwaitsASessionBringsIt) {
  AwaySessions away;
  std::vector<int> told;
  EXPECT_TRUE(away.Await("a", [&](const absl::Status&) { told.push_back(1); }));
  EXPECT_FALSE(
      away.Await("a", [&](const absl::Status&) { told.push_back(2); }));
  EXPECT_TRUE(away.Await("b", [](const absl::Status&) {}));
  for (const auto& then : away.TakeWaiting("a")) then(absl::OkStatus());
  EXPECT_EQ(told, (std::vector<int>{1, 2}));
  EXPECT_TRUE(away.Await("a", [](const absl::Status&) {}));
}

TEST(AwaySessionsTest, WhatIsComingIsNotSettled) {
  AwaySessions away;
  EXPECT_TRUE(away.IsSettled("a", 0));
  away.Await("a", [](const absl::Status&) {});
  EXPECT_FALSE(away.IsSettled("a", 9));
  EXPECT_TRUE(away.IsSettled("b", 9));
  away.TakeWaiting("a");
  EXPECT_TRUE(away.IsSettled("a", 9));
}

TEST(AwaySessionsTest, WhatIsRemovedIsSettledOnceThatIsOnStableStorage) {
  AwaySessions away;
  away.Removed("a", 5);
  EXPECT_FALSE(away.IsSettled("a", 4));
  EXPECT_TRUE(away.IsSettled("a", 5));
  away.Removed("a", 7);  // again, under the same name
  EXPECT_FALSE(away.IsSettled("a", 6));
}

TEST(AwaySessionsTest, RemovalsThatAreStoredAreForgotten) {
  AwaySessions away;
  away.Removed("a", 5);
  away.Removed("b", 6);
  away.Forget(5);
  EXPECT_TRUE(away.IsSettled("a", 0));
  EXPECT_FALSE(away.IsSettled("b", 5));
}

}  // namespace
}  // namespace txl
