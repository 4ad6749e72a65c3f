#include "client/bench/plan/limits.h"

#include <gtest/gtest.h>

namespace txl::bench {
namespace {

TEST(ParseLimits, ReadsEachNameWithItsUnit) {
  const auto limits =
      ParseLimits({"ttft=200ms", "itl=0.05s", "tpot=20000us", "e2e=1m"});
  ASSERT_TRUE(limits.ok()) << limits.status();
  EXPECT_DOUBLE_EQ(limits->time_to_first_token, 0.2);
  EXPECT_DOUBLE_EQ(limits->inter_token, 0.05);
  EXPECT_DOUBLE_EQ(limits->per_token, 0.02);
  EXPECT_DOUBLE_EQ(limits->end_to_end, 60);
  EXPECT_TRUE(limits->any());
}

TEST(ParseLimits, OfNothingAreNone) {
  const auto limits = ParseLimits({});
  ASSERT_TRUE(limits.ok());
  EXPECT_FALSE(limits->any());
  EXPECT_EQ(limits->end_to_end, Limits::kNone);
}

TEST(ParseLimits, NamesWhatItCannotRead) {
  for (const char* text : {"", "ttft", "ttft=", "ttft=5", "ttft=-1s", "ttft=0s",
                           "ttft=inf", "speed=1s", "=1s"}) {
    const absl::Status status = ParseLimits({text}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(std::string(status.message()).find("ttft=200ms"),
              std::string::npos);
  }
  EXPECT_FALSE(ParseLimits({"e2e=1s", "e2e=2s"}).ok());
}

}  // namespace
}  // namespace txl::bench
