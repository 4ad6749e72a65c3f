#include "client/bench/result/svg_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace txl::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<double> At(const std::vector<Tick>& ticks) {
  std::vector<double> values;
  for (const Tick& tick : ticks) values.push_back(tick.at);
  return values;
}

Chart OneLine(std::vector<std::pair<double, double>> points) {
  Chart chart;
  chart.title = "t";
  chart.lines = {{"l", "#000000", std::move(points), false}};
  return chart;
}

TEST(RoundTicks, AreRoundNumbersWithinTheRange) {
  EXPECT_THAT(At(RoundTicks(0, 10, false)), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(At(RoundTicks(3, 290, false)),
              ElementsAre(50, 100, 150, 200, 250));
  EXPECT_EQ(RoundTicks(0, 1200, false)[1].label, "200");
  EXPECT_EQ(RoundTicks(0, 0.012, false)[1].label, "0.002");
}

TEST(RoundTicks, OfALogarithmicAxisAreOneTwoFiveOrPowersOfTen) {
  EXPECT_THAT(At(RoundTicks(3, 60, true)), ElementsAre(5, 10, 20, 50));
  EXPECT_THAT(At(RoundTicks(0.5, 20'000, true)),
              ElementsAre(1, 10, 100, 1000, 10'000));
  EXPECT_THAT(At(RoundTicks(4, 9, true)), ElementsAre(4, 5, 6, 7, 8, 9));
}

TEST(EscapeMarkup, LeavesNothingThatIsMarkup) {
  EXPECT_EQ(EscapeMarkup("a<b>&\"c'\n"), "a&lt;b&gt;&amp;&quot;c&#39; ");
}

TEST(AnSvg, PutsTheEndsOfALineAtTheEndsOfTheAxes) {
  // The picture is 720 by 320 with borders of 72, 16, 48 and 48.
  EXPECT_THAT(ToSvg(OneLine({{0, 0}, {5, 50}, {10, 100}})),
              HasSubstr("d=\"M72.0,272.0 L388.0,160.0 L704.0,48.0\""));
}

TEST(AnSvg, OfALogarithmicAxisSpacesPowersEvenly) {
  Chart chart = OneLine({{1, 1}, {10, 10}, {100, 100}});
  chart.x.logarithmic = chart.y.logarithmic = true;
  EXPECT_THAT(ToSvg(chart),
              HasSubstr("d=\"M72.0,272.0 L388.0,160.0 L704.0,48.0\""));
}

TEST(AnSvg, LeavesOutPointsThatCannotBeDrawn) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(ToSvg(OneLine({{0, 0}, {3, inf}, {NAN, 3}, {10, 100}})),
              HasSubstr("d=\"M72.0,272.0 L704.0,48.0\""));
  Chart chart = OneLine({{1, 1}, {2, 0}, {100, 100}});
  chart.x.logarithmic = chart.y.logarithmic = true;
  EXPECT_THAT(ToSvg(chart), HasSubstr("d=\"M72.0,272.0 L704.0,48.0\""));
}

TEST(AnSvg, WithoutPointsSaysSo) {
  const std::string svg = ToSvg(OneLine({}));
  EXPECT_THAT(svg, HasSubstr("nothing was measured"));
  EXPECT_THAT(svg, Not(HasSubstr("<path")));
}

TEST(AnSvg, OfOneValueHasAxesThatDoNotVanish) {
  const std::string svg = ToSvg(OneLine({{3, 0}}));
  EXPECT_THAT(svg, HasSubstr("<path"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(AnSvg, ShowsTitlesLegendAndGuides) {
  Chart chart = OneLine({{0, 0}, {10, 100}});
  chart.title = "a & b";
  chart.x.title = "time";
  chart.y.title = "speed";
  chart.guides = {{Guide::Kind::kVertical, 5, 0, "here"},
                  {Guide::Kind::kHorizontal, 50, 0, "limit"},
                  {Guide::Kind::kBand, 2, 4, "stall"},
                  {Guide::Kind::kVertical, 50, 0, "outside"}};
  const std::string svg = ToSvg(chart);
  for (const char* part :
       {"a &amp; b", "time", "speed", ">l<", "here", "limit", "stall"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
  EXPECT_THAT(svg, Not(HasSubstr("outside")));
  EXPECT_THAT(svg, HasSubstr("y=\"76.0\" text-anchor=\"start\">stall"));
  // A fifth of 632 wide, from a fifth on.
  EXPECT_THAT(svg, HasSubstr("x=\"198.4\" y=\"48.0\" width=\"126.4\""));
}

}  // namespace
}  // namespace txl::bench
