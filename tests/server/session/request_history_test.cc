#include "server/session/request_history.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

TEST(RequestHistory, KnowsTheIdsThatWereAdded) {
  RequestHistory history;
  EXPECT_FALSE(history.Contains("a"));
  history.Add("a", 16);
  EXPECT_TRUE(history.Contains("a"));
  EXPECT_FALSE(history.Contains("b"));
  EXPECT_FALSE(history.Contains(""));
}

TEST(RequestHistory, ForgetsTheOldestOverItsCapacity) {
  RequestHistory history;
  for (int i = 0; i < 100; ++i) history.Add(absl::StrCat("id", i), 3);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(history.Contains(absl::StrCat("id", i)), i >= 97) << i;
  }
}

TEST(RequestHistory, IsTheSameAfterItWasPutAway) {
  RequestHistory history;
  history.Add("a", 16);
  history.Add("b", 16);
  const RequestHistory again(history.hashes());
  EXPECT_TRUE(again.Contains("a"));
  EXPECT_TRUE(again.Contains("b"));
  EXPECT_FALSE(again.Contains("c"));
  // The first 8 bytes that sha256sum prints of "a", the last one first.
  EXPECT_EQ(history.hashes()[0], 0xcabd1bca128197ca);
}

TEST(RequestHistory, WithoutCapacityNothingIsRemembered) {
  RequestHistory history;
  history.Add("a", 0);
  EXPECT_FALSE(history.Contains("a"));
}

}  // namespace
}  // namespace txl
