#include "server/session/expired_ids.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

TEST(ExpiredIdsTest, KnowsWhatItWasTold) {
  ExpiredIds ids(10);
  EXPECT_FALSE(ids.Contains("a"));
  ids.Remember("a");
  EXPECT_TRUE(ids.Contains("a"));
  EXPECT_FALSE(ids.Contains("b"));
}

TEST(ExpiredIdsTest, ForgetsTheOldestOverItsCapacity) {
  ExpiredIds ids(2);
  ids.Remember("a");
  ids.Remember("b");
  ids.Remember("c");
  EXPECT_FALSE(ids.Contains("a"));
  EXPECT_TRUE(ids.Contains("b"));
  EXPECT_TRUE(ids.Contains("c"));
}

TEST(ExpiredIdsTest, AnIdThatExpiresAgainIsTheNewestAndCountsOnce) {
  ExpiredIds ids(2);
  ids.Remember("a");
  ids.Remember("b");
  ids.Remember("a");
  EXPECT_TRUE(ids.Contains("b"));
  ids.Remember("c");
  EXPECT_TRUE(ids.Contains("a"));
  EXPECT_FALSE(ids.Contains("b"));
  EXPECT_TRUE(ids.Contains("c"));
}

TEST(ExpiredIdsTest, AForgottenIdMakesRoom) {
  ExpiredIds ids(2);
  ids.Remember("a");
  ids.Remember("b");
  ids.Forget("b");
  ids.Forget("never there");
  EXPECT_FALSE(ids.Contains("b"));
  ids.Remember("c");
  EXPECT_TRUE(ids.Contains("a"));
  EXPECT_TRUE(ids.Contains("c"));
}

TEST(ExpiredIdsTest, WithoutCapacityNothingIsRemembered) {
  ExpiredIds ids(0);
  ids.Remember("a");
  EXPECT_FALSE(ids.Contains("a"));
}

}  // namespace
}  // namespace txl
