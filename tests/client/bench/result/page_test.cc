#include "client/bench/result/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "client/bench/result/report_json.h"
#include "tests/client/bench/simulated_run.h"

namespace txl::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

// 10 seconds at 20 a second with a stall of one second, as JSON.
Json StalledRun() {
  SimulatedServer server;
  server.first_token = [](int64_t) { return 20 * kMs; };
  server.gap = [](int64_t, int64_t) { return 4 * kMs; };
  server.stalls = {{5000 * kMs, 1000 * kMs}};
  RunOptions options = ConstantRate(20, 10);
  options.workload.max_tokens = Distribution::Fixed(5);
  return ToJson(SimulatedReport(options, server, {.end_to_end = 0.5}));
}

constexpr char kDataStart[] =
    "<script type=\"application/json\" id=\"result\">";

// What the page's script reads, as a browser would: up to the next end of a
// script element.
std::string DataOf(const std::string& page) {
  const std::vector<std::string> parts =
      absl::StrSplit(page, absl::MaxSplits(kDataStart, 1));
  EXPECT_EQ(parts.size(), 2u);
  return parts.back().substr(0, parts.back().find("</script"));
}

TEST(APage, CarriesTheWholeResult) {
  const Json run = StalledRun();
  const auto page = MakePage(run);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page, StartsWith("<!doctype html>"));
  EXPECT_EQ(Json::parse(DataOf(*page)), run);
}

TEST(APage, CarriesAllRunsOfASweep) {
  const Json sweep = {{"schema", kSchema},
                      {"kind", "sweep"},
                      {"main_run", 1u},
                      {"runs", {StalledRun(), StalledRun()}}};
  const auto page = MakePage(sweep);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(Json::parse(DataOf(*page)), sweep);
}

TEST(APage, NeedsNothingFromElsewhere) {
  const auto page = MakePage(StalledRun());
  ASSERT_TRUE(page.ok()) << page.status();
  for (const char* reference :
       {"src=", "href=", "url(", "@import", "<link", "fetch(", "import("}) {
    EXPECT_THAT(*page, Not(HasSubstr(reference)));
  }
  EXPECT_THAT(*page, HasSubstr("var uPlot=function"));
  EXPECT_THAT(*page, HasSubstr(".u-legend"));
  EXPECT_THAT(*page, HasSubstr("The MIT License (MIT)"));
}

// A name that is left would be a part that CMake did not put in.
TEST(APage, HasAllItsParts) {
  const auto page = MakePage(StalledRun());
  ASSERT_TRUE(page.ok());
  for (const char* part :
       {"@RESULT@", "@CHART_LIBRARY@", "@CHART_STYLE@", "@CHART_LICENSE@"}) {
    EXPECT_THAT(*page, Not(HasSubstr(part)));
  }
}

TEST(APage, EscapesWhatAServerMaySend) {
  Json run = StalledRun();
  run["model"] = "</script><script>alert(1)</script><!--";
  run["statuses"]["<b>"] = 1;
  const auto page = MakePage(run);
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(DataOf(*page), Not(HasSubstr("<")));
  EXPECT_THAT(*page, Not(HasSubstr("<script>alert")));
  EXPECT_EQ(Json::parse(DataOf(*page)), run);
}

// Text of the result becomes text of the page: no function that reads markup.
TEST(APage, TakesNothingForMarkup) {
  const auto page = MakePage(StalledRun());
  ASSERT_TRUE(page.ok());
  const std::string script = page->substr(page->find("JSON.parse(document"));
  for (const char* markup : {"innerHTML", "outerHTML", "insertAdjacentHTML",
                             "document.write", "eval("}) {
    EXPECT_THAT(script, Not(HasSubstr(markup)));
  }
}

TEST(APage, RefusesWhatIsNoResult) {
  Json broken = StalledRun();
  broken["tester"] = 5;
  Json cut = StalledRun();
  cut.erase("stalls");
  for (const Json& bad : {Json(), Json::object(), broken, cut}) {
    EXPECT_EQ(MakePage(bad).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace txl::bench
