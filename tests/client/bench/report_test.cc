#include "client/bench/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace txl::bench {
namespace {

TurnResult Turn(const std::string& status, int64_t tokens, double first,
                std::vector<double> gaps, double total) {
  return {.status = status,
          .problem = "",
          .tokens = tokens,
          .first_token = first,
          .total = total,
          .gaps = std::move(gaps)};
}

LoadResult TwoGoodOneCutOneRefused() {
  LoadResult result;
  result.model = "m";
  result.seconds = 2;
  result.turns = {Turn("OK", 3, 0.5, {0.1, 0.2}, 0.8),
                  Turn("OK", 3, 0.1, {0.3, 0.4}, 0.8),
                  Turn("CANCELLED", 2, 0.2, {0.5}, 0.7),
                  Turn("RESOURCE_EXHAUSTED (QUEUE_FULL)", 0, 0, {}, 0.01)};
  return result;
}

TEST(Report, CountsTokensOfAllAndRequestsOfTheFinished) {
  const Report report = MakeReport(TwoGoodOneCutOneRefused());
  EXPECT_EQ(report.requests, 4);
  EXPECT_EQ(report.tokens, 8);
  EXPECT_DOUBLE_EQ(report.tokens_per_second, 4);
  EXPECT_DOUBLE_EQ(report.requests_per_second, 1);
  const std::map<std::string, int64_t> statuses = {
      {"OK", 2}, {"CANCELLED", 1}, {"RESOURCE_EXHAUSTED (QUEUE_FULL)", 1}};
  EXPECT_EQ(report.statuses, statuses);
}

TEST(Report, TakesEachLatencyFromTheTurnsThatHaveIt) {
  const Report report = MakeReport(TwoGoodOneCutOneRefused());
  EXPECT_EQ(report.time_to_first_token.count, 3);
  EXPECT_DOUBLE_EQ(report.time_to_first_token.p50, 0.2);
  EXPECT_EQ(report.inter_token.count, 5);
  EXPECT_DOUBLE_EQ(report.inter_token.p50, 0.3);
  EXPECT_DOUBLE_EQ(report.inter_token.max, 0.5);
  EXPECT_EQ(report.end_to_end.count, 2);
}

TEST(Report, JsonHoldsTheSameFigures) {
  LoadResult result = TwoGoodOneCutOneRefused();
  result.turns[2].problem = "Started twice";
  result.options.seed = 9;
  const std::string line = ToJsonLine(MakeReport(result));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const nlohmann::json json = nlohmann::json::parse(line);
  EXPECT_EQ(json["tokens"], 8);
  EXPECT_EQ(json["tokens_per_second"], 4.0);
  EXPECT_EQ(json["statuses"]["OK"], 2);
  EXPECT_EQ(json["malformed_streams"]["Started twice"], 1);
  EXPECT_EQ(json["seed"], 9);
  EXPECT_EQ(json["inter_token_seconds"]["count"], 5);
  EXPECT_EQ(json["mode"], "closed loop");
}

TEST(Report, TextShowsMillisecondsAndMalformedStreams) {
  LoadResult result = TwoGoodOneCutOneRefused();
  result.turns[0].problem = "Started twice";
  const std::string text = ToText(MakeReport(result));
  EXPECT_NE(text.find("4.0 tokens/s"), std::string::npos) << text;
  EXPECT_NE(text.find("200.00"), std::string::npos) << text;
  EXPECT_NE(text.find("Started twice"), std::string::npos) << text;
  EXPECT_NE(text.find("QUEUE_FULL"), std::string::npos) << text;
}

TEST(Report, OfNoTurnsIsAllZero) {
  const Report report = MakeReport(LoadResult());
  EXPECT_EQ(report.tokens_per_second, 0);
  EXPECT_EQ(report.end_to_end.count, 0);
}

}  // namespace
}  // namespace txl::bench
