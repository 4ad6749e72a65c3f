// The tests' own reader of the text format: it must see what is wrong.

#include "tests/server/exporter/scrape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace txl::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kGood[] =
    "# HELP a_total what a is\n"
    "# TYPE a_total counter\n"
    "a_total{k=\"x y\"} 3\n"
    "a_total{k=\"z\"} 4\n"
    "# TYPE h histogram\n"
    "h_count 1\n"
    "h_sum 0.5\n"
    "h_bucket{le=\"+Inf\"} 1\n";

TEST(ParseScrapeTest, ReadsFamiliesAndSamples) {
  const Scrape scrape = ParseScrape(kGood);
  EXPECT_THAT(scrape.mistakes, IsEmpty());
  EXPECT_EQ(scrape.types.at("h"), "histogram");
  EXPECT_EQ(scrape.helps.at("a_total"), "what a is");
  EXPECT_EQ(scrape.At("a_total{k=\"x y\"}"), 3);
  EXPECT_EQ(scrape.Sum("a_total"), 7);
  EXPECT_EQ(scrape.At("h_bucket{le=\"+Inf\"}"), 1);
}

TEST(ParseScrapeTest, ASampleThatComesTwiceIsAMistake) {
  EXPECT_THAT(ParseScrape(absl::StrCat(kGood, "h_sum 0.5\n")).mistakes,
              ElementsAre("h_sum 0.5"));
}

TEST(ParseScrapeTest, ASampleAwayFromItsFamilyIsAMistake) {
  EXPECT_THAT(ParseScrape(absl::StrCat(kGood, "a_total 1\n")).mistakes,
              ElementsAre("a_total 1"));
  EXPECT_THAT(ParseScrape("lonely 1\n").mistakes, ElementsAre("lonely 1"));
}

TEST(ParseScrapeTest, AFamilyThatComesTwiceIsAMistake) {
  EXPECT_THAT(
      ParseScrape(absl::StrCat(kGood, "# TYPE a_total gauge\n")).mistakes,
      ElementsAre("# TYPE a_total gauge"));
}

TEST(ParseScrapeTest, OtherLinesAreMistakes) {
  EXPECT_THAT(
      ParseScrape("# TYPE a gauge\na one\nnothing\n# WHAT a b\n").mistakes,
      ElementsAre("a one", "nothing", "# WHAT a b"));
}

TEST(HttpGetTest, WithoutAServerThereIsNoAnswer) {
  EXPECT_EQ(HttpGet("127.0.0.1:1", "/metrics").code, 0);
  EXPECT_EQ(HttpGet("nowhere", "/metrics").code, 0);
}

}  // namespace
}  // namespace txl::testing
