#include "server/exporter/family_list.h"

#include <gtest/gtest.h>

#include "tests/server/exporter/fake_status.h"

namespace txl {
namespace {

constexpr std::array kBounds = {0.5, 1., 10.};

TEST(FamilyListTest, WritesCountersAndGaugesWithTheirLabels) {
  FamilyList list;
  list.Counter("a_total", "what a is").Sample(3);
  list.Gauge("b", "what b is")
      .Sample(1.5, {{"x", "1"}, {"y", "two"}})
      .Sample(-2, {{"x", "2"}, {"y", "three"}});
  EXPECT_EQ(testing::TextOf(list.Take()),
            "# HELP a_total what a is\n"
            "# TYPE a_total counter\n"
            "a_total 3\n"
            "# HELP b what b is\n"
            "# TYPE b gauge\n"
            "b{x=\"1\",y=\"two\"} 1.5\n"
            "b{x=\"2\",y=\"three\"} -2\n");
}

TEST(FamilyListTest, BucketsOfAHistogramAddUp) {
  Histogram histogram(kBounds);
  for (const double value : {0.25, 0.5, 0.75, 2., 99.}) {
    histogram.Observe(value);
  }
  FamilyList list;
  list.Histograms("h_seconds", "what h is").Sample(histogram, {{"k", "v"}});
  const testing::Scrape scrape =
      testing::ParseScrape(testing::TextOf(list.Take()));
  EXPECT_EQ(scrape.types.at("h_seconds"), "histogram");
  EXPECT_EQ(scrape.At("h_seconds_count{k=\"v\"}"), 5);
  EXPECT_EQ(scrape.At("h_seconds_sum{k=\"v\"}"), 102.5);
  EXPECT_EQ(scrape.At("h_seconds_bucket{k=\"v\",le=\"0.5\"}"), 2);
  EXPECT_EQ(scrape.At("h_seconds_bucket{k=\"v\",le=\"1\"}"), 3);
  EXPECT_EQ(scrape.At("h_seconds_bucket{k=\"v\",le=\"10\"}"), 4);
  EXPECT_EQ(scrape.At("h_seconds_bucket{k=\"v\",le=\"+Inf\"}"), 5);
  EXPECT_EQ(scrape.samples.size(), 6u);
}

TEST(FamilyListTest, AFamilyWithoutASampleIsStillDeclared) {
  FamilyList list;
  list.Counter("none_total", "nothing yet");
  EXPECT_EQ(testing::TextOf(list.Take()),
            "# HELP none_total nothing yet\n# TYPE none_total counter\n");
}

TEST(FamilyListTest, BigCountsAreWholeNumbers) {
  FamilyList list;
  list.Counter("big_total", "big").Sample(9'007'199'254'740'991.0);
  EXPECT_NE(testing::TextOf(list.Take()).find("big_total 9007199254740991\n"),
            std::string::npos);
}

}  // namespace
}  // namespace txl
