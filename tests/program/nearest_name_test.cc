#include "program/nearest_name.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

const std::vector<std::string> kNames = {"slots", "slot-memory",
                                         "session-memory", "drain-timeout"};

TEST(NearestNameTest, TakesTheFewestChanges) {
  EXPECT_EQ(NearestName("drain-timout", kNames), "drain-timeout");
  EXPECT_EQ(NearestName("drain-timeoutt", kNames), "drain-timeout");
  EXPECT_EQ(NearestName("drain_timeout", kNames), "drain-timeout");
  EXPECT_EQ(NearestName("slot-memmory", kNames), "slot-memory");
  EXPECT_EQ(NearestName("slot", kNames), "slots");
  EXPECT_EQ(NearestName("slost", kNames), "slots");  // one swap
}

TEST(NearestNameTest, SuggestsNothingThatIsFar) {
  EXPECT_EQ(NearestName("telemetry", kNames), "");
  EXPECT_EQ(NearestName("", kNames), "");
  EXPECT_EQ(NearestName("abc", {}), "");
}

TEST(DidYouMeanTest, AsksOrSaysNothing) {
  EXPECT_EQ(DidYouMean("slotss", kNames), "; did you mean slots?");
  EXPECT_EQ(DidYouMean("telemetry", kNames), "");
}

}  // namespace
}  // namespace txl
