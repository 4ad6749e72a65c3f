#include "client/cli/score_command.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace txl::cli {
namespace {

google::protobuf::RepeatedPtrField<v1::ScoredToken> Piece(
    const std::vector<float>& logprobs) {
  google::protobuf::RepeatedPtrField<v1::ScoredToken> piece;
  for (const float logprob : logprobs) {
    v1::ScoredToken* token = piece.Add();
    if (logprob <= 0) token->set_logprob(logprob);
  }
  return piece;
}

constexpr float kNone = 1;  // no logprob

TEST(ScoreTotals, AFirstTokenIsATokenButNotPredicted) {
  ScoreTotals totals;
  totals.Add(Piece({kNone, -1, -2}));
  totals.Add(Piece({-3}));
  EXPECT_EQ(totals.tokens, 4);
  EXPECT_EQ(totals.predicted, 3);
  EXPECT_DOUBLE_EQ(totals.sum_logprob, -6);
  EXPECT_DOUBLE_EQ(*totals.nats_per_token(), 2);
  EXPECT_DOUBLE_EQ(*totals.perplexity(), std::exp(2.0));
}

TEST(ScoreTotals, OneBitACharacterIsOneBit) {
  ScoreTotals totals;
  const auto bit = static_cast<float>(-std::log(2.0));
  totals.Add(Piece({bit, bit, bit, bit}));
  totals.characters = 4;
  EXPECT_NEAR(*totals.bits_per_character(), 1, 1e-6);
  totals.characters = 8;
  EXPECT_NEAR(*totals.bits_per_character(), 0.5, 1e-6);
}

TEST(ScoreTotals, WhereNothingIsPredictedNothingIsDefined) {
  ScoreTotals totals;
  totals.Add(Piece({kNone}));
  totals.characters = 1;
  EXPECT_EQ(totals.nats_per_token(), std::nullopt);
  EXPECT_EQ(totals.perplexity(), std::nullopt);
  EXPECT_EQ(totals.bits_per_character(), std::nullopt);
  EXPECT_NE(ToText(totals).find("perplexity not defined\n"), std::string::npos);
  EXPECT_TRUE(
      nlohmann::json::parse(ToJsonLine(totals))["perplexity"].is_null());
}

TEST(ScoreTotals, TextAndJsonShowTheFigures) {
  ScoreTotals totals;
  totals.Add(Piece({kNone, -1, -2}));
  totals.characters = 3;
  EXPECT_NE(ToText(totals).find("nats per token 1.500000\n"),
            std::string::npos);
  const auto json = nlohmann::json::parse(ToJsonLine(totals));
  EXPECT_EQ(json["tokens"], 3);
  EXPECT_EQ(json["predicted_tokens"], 2);
  EXPECT_EQ(json["nats_per_token"], 1.5);
  EXPECT_DOUBLE_EQ(json["bits_per_character"], 3 / std::log(2.0) / 3);
}

}  // namespace

}  // namespace txl::cli
