#include "client/cli/n_best.h"

#include <gtest/gtest.h>

#include <string>

#include "client/cli/samples.h"

namespace txl::cli {
namespace {

std::string Message(const std::string& line) {
  return std::string(ParseNBest(line).status().message());
}

TEST(ParseNBest, TakesContextSessionAndAlternatives) {
  const auto request = ParseNBest(
      R"({"context": "to be", "session": "s", "alternatives": ["a", "b"]})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->text(), "to be");
  EXPECT_EQ(request->session_id(), "s");
  ASSERT_EQ(request->alternatives_size(), 2);
  EXPECT_EQ(request->alternatives(1).text(), "b");
  EXPECT_FALSE(request->return_tokens());
}

TEST(ParseNBest, AnEmptyContextIsNone) {
  const auto request = ParseNBest(R"({"context": "", "alternatives": ["a"]})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_FALSE(request->has_text());
}

TEST(ParseNBest, SaysWhatIsWrong) {
  EXPECT_EQ(Message("{"), "not a JSON object");
  EXPECT_EQ(Message("[1]"), "not a JSON object");
  EXPECT_EQ(Message("{}"), "\"alternatives\" must hold at least one text");
  EXPECT_EQ(Message(R"({"alternatives": "a"})"),
            "\"alternatives\" must be an array");
  EXPECT_EQ(Message(R"({"alternatives": [1]})"),
            "\"alternatives\" must hold strings only");
  EXPECT_EQ(Message(R"({"context": 1, "alternatives": ["a"]})"),
            "\"context\" must be a string");
  EXPECT_EQ(Message(R"({"contexts": "a", "alternatives": ["a"]})"),
            "unknown key \"contexts\"");
}

TEST(FormatNBest, NamesTheFirstOfTheHighestSums) {
  v1::ScoreAlternativesResponse response;
  for (const double sum : {-3.0, -1.5, -1.5}) {
    v1::AlternativeScore* score = response.add_scores();
    score->set_sum_logprob(sum);
    score->set_token_count(2);
  }
  EXPECT_EQ(FormatNBest(response),
            R"({"sum_logprob":[-3.0,-1.5,-1.5],"token_count":[2,2,2],)"
            "\"best\":1}\n");
}

TEST(SampleJson, SaysOfWhichSampleAnEventIs) {
  v1::GenerateResponse response;
  EXPECT_EQ(SampleJson(3, response), "{\"sample\":3}\n");
  response.mutable_token()->set_text("a");
  const std::string line = SampleJson(0, response);
  EXPECT_EQ(line.rfind("{\"sample\":0,\"token\":{", 0), 0u) << line;
  EXPECT_EQ(line.substr(line.size() - 3), "}}\n");
}

}  // namespace
}  // namespace txl::cli
