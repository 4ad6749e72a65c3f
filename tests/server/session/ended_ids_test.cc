#include <gtest/gtest.h>

#include "server/session/session_table.h"

namespace txl {
namespace {

TEST(EndedIdsTest, KnowsWhatItWasTold) {
  EndedIds ids(10);
  EXPECT_FALSE(ids.Find("a").has_value());
  ids.Remember("a", SessionEnd::kExpired);
  EXPECT_TRUE(ids.Find("a").has_value());
  EXPECT_FALSE(ids.Find("b").has_value());
}

TEST(EndedIdsTest, ForgetsTheOldestOverItsCapacity) {
  EndedIds ids(2);
  ids.Remember("a", SessionEnd::kExpired);
  ids.Remember("b", SessionEnd::kExpired);
  ids.Remember("c", SessionEnd::kExpired);
  EXPECT_FALSE(ids.Find("a").has_value());
  EXPECT_TRUE(ids.Find("b").has_value());
  EXPECT_TRUE(ids.Find("c").has_value());
}

TEST(EndedIdsTest, AnIdThatEndsAgainIsTheNewestAndCountsOnce) {
  EndedIds ids(2);
  ids.Remember("a", SessionEnd::kExpired);
  ids.Remember("b", SessionEnd::kExpired);
  ids.Remember("a", SessionEnd::kExpired);
  EXPECT_TRUE(ids.Find("b").has_value());
  ids.Remember("c", SessionEnd::kExpired);
  EXPECT_TRUE(ids.Find("a").has_value());
  EXPECT_FALSE(ids.Find("b").has_value());
  EXPECT_TRUE(ids.Find("c").has_value());
}

TEST(EndedIdsTest, AForgottenIdMakesRoom) {
  EndedIds ids(2);
  ids.Remember("a", SessionEnd::kExpired);
  ids.Remember("b", SessionEnd::kExpired);
  ids.Forget("b");
  ids.Forget("never there");
  EXPECT_FALSE(ids.Find("b").has_value());
  ids.Remember("c", SessionEnd::kExpired);
  EXPECT_TRUE(ids.Find("a").has_value());
  EXPECT_TRUE(ids.Find("c").has_value());
}

TEST(EndedIdsTest, KnowsHowTheSessionEndedLast) {
  EndedIds ids(10);
  ids.Remember("a", SessionEnd::kExpired);
  ids.Remember("b", SessionEnd::kEvicted);
  EXPECT_EQ(ids.Find("a"), SessionEnd::kExpired);
  EXPECT_EQ(ids.Find("b"), SessionEnd::kEvicted);
  ids.Remember("a", SessionEnd::kEvicted);
  EXPECT_EQ(ids.Find("a"), SessionEnd::kEvicted);
}

TEST(EndedIdsTest, TheOldestCanBeForgottenForItsMemory) {
  EndedIds ids(10);
  EXPECT_FALSE(ids.ForgetOldest());
  EXPECT_EQ(ids.Bytes(), 0);
  ids.Remember("a", SessionEnd::kExpired);
  const int64_t one = ids.Bytes();
  EXPECT_GE(one, 2 * 64);  // an id stands in it twice
  ids.Remember("b", SessionEnd::kExpired);
  EXPECT_EQ(ids.Bytes(), 2 * one);
  EXPECT_TRUE(ids.ForgetOldest());
  EXPECT_FALSE(ids.Find("a").has_value());
  EXPECT_TRUE(ids.Find("b").has_value());
  EXPECT_EQ(ids.Bytes(), one);
}

TEST(EndedIdsTest, WithoutCapacityNothingIsRemembered) {
  EndedIds ids(0);
  ids.Remember("a", SessionEnd::kExpired);
  EXPECT_FALSE(ids.Find("a").has_value());
}

}  // namespace
}  // namespace txl
