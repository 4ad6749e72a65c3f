#include "tests/bench/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace txl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseCountsTest, ListsAndRangesInTheirOrder) {
  EXPECT_THAT(ParseCounts("32,1").value(), ElementsAre(32, 1));
  EXPECT_THAT(ParseCounts("2-4,64").value(), ElementsAre(2, 3, 4, 64));
  EXPECT_THAT(ParseCounts("7-7").value(), ElementsAre(7));
}

TEST(ParseCountsTest, NamesWhatIsNoCount) {
  for (const char* text :
       {"", "0", "-1", "1,", "a", "4-2", "1-", "1-2-3", "65537"}) {
    EXPECT_EQ(ParseCounts(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_THAT(ParseCounts("1,two").status().message(), HasSubstr("\"two\""));
}

TEST(QuantileTest, IsAValueThatWasMeasured) {
  EXPECT_EQ(Quantile({3, 1, 2, 4}, 0.5), 2);
  EXPECT_EQ(Quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(Quantile({3, 1, 2, 4}, 0.99), 4);
  EXPECT_EQ(Quantile({5}, 0.01), 5);
}

TEST(RoundedTest, KeepsSixDigits) {
  EXPECT_DOUBLE_EQ(Rounded(123.4567891), 123.457);
  EXPECT_DOUBLE_EQ(Rounded(-0.0012345678), -0.00123457);
  EXPECT_DOUBLE_EQ(Rounded(98765432), 98765400);
  EXPECT_EQ(Rounded(0), 0);
}

TEST(InterpolateTest, IsLinearInTheLogarithmAndFlatOutside) {
  const std::vector<CurvePoint> points = {{1, 10}, {100, 30}, {200, 20}};
  EXPECT_DOUBLE_EQ(Interpolate(points, 10), 20);
  EXPECT_DOUBLE_EQ(Interpolate(points, 100), 30);
  EXPECT_DOUBLE_EQ(Interpolate(points, 0.5), 10);
  EXPECT_DOUBLE_EQ(Interpolate(points, 1e9), 20);
  EXPECT_DOUBLE_EQ(Interpolate({{5, 7}}, 1), 7);
}

}  // namespace
}  // namespace txl
