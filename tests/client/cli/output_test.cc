#include "client/cli/output.h"

#include <gtest/gtest.h>

namespace txl::cli {
namespace {

v1::GenerateResponse TokenWith(uint32_t id, const std::string& text) {
  v1::GenerateResponse response;
  response.mutable_token()->set_token_id(id);
  response.mutable_token()->set_text(text);
  response.mutable_token()->set_logprob(-0.25f);
  return response;
}

v1::GenerateResponse FinishedWith(const std::string& text) {
  v1::GenerateResponse response;
  response.mutable_finished()->set_text(text);
  return response;
}

v1::GenerateResponse StartedOnly() {
  v1::GenerateResponse response;
  response.mutable_started();
  return response;
}

TEST(TurnPrinter, TextIsTheTokensTextsAndTheHeldBackRest) {
  TurnPrinter printer(PrintMode::kText, false);
  EXPECT_EQ(printer.Format(StartedOnly()), "");
  EXPECT_EQ(printer.Format(TokenWith(1, "To ")), "To ");
  EXPECT_EQ(printer.Format(TokenWith(2, "")), "");
  EXPECT_EQ(printer.Format(FinishedWith("be")), "be");
  EXPECT_EQ(printer.End(), "\n");
  EXPECT_FALSE(printer.silent());
}

TEST(TurnPrinter, AddsNoSecondLineEnd) {
  TurnPrinter printer(PrintMode::kText, false);
  printer.Format(TokenWith(1, "done\n"));
  EXPECT_EQ(printer.End(), "");
}

TEST(TurnPrinter, SaysWhenAModelHasNoText) {
  TurnPrinter printer(PrintMode::kText, false);
  printer.Format(TokenWith(1, ""));
  EXPECT_TRUE(printer.silent());
  EXPECT_EQ(printer.End(), "");
}

TEST(TurnPrinter, TokensAreIdsWithSpacesBetween) {
  TurnPrinter printer(PrintMode::kTokens, false);
  EXPECT_EQ(printer.Format(TokenWith(7, "x")), "7");
  EXPECT_EQ(printer.Format(TokenWith(0, "y")), " 0");
  EXPECT_EQ(printer.Format(FinishedWith("rest")), "");
  EXPECT_EQ(printer.End(), "\n");
}

TEST(TurnPrinter, TokensWithLogProbabilitiesAreLines) {
  TurnPrinter printer(PrintMode::kTokens, true);
  v1::GenerateResponse response = TokenWith(7, "x");
  v1::TokenLogprob* other = response.mutable_token()->add_top_logprobs();
  other->set_token_id(3);
  other->set_logprob(-0.5f);
  EXPECT_EQ(printer.Format(response), "7 -0.25 3:-0.5\n");
  EXPECT_EQ(printer.End(), "");
}

TEST(TurnPrinter, BatchesAreTokensToo) {
  v1::GenerateResponse batch;
  *batch.mutable_tokens()->add_tokens() = TokenWith(1, "a").token();
  *batch.mutable_tokens()->add_tokens() = TokenWith(2, "b").token();
  EXPECT_EQ(TurnPrinter(PrintMode::kText, false).Format(batch), "ab");
  EXPECT_EQ(TurnPrinter(PrintMode::kTokens, false).Format(batch), "1 2");
}

TEST(TurnPrinter, JsonIsOneLineWithZeroesShown) {
  TurnPrinter printer(PrintMode::kJson, false);
  const std::string line = printer.Format(TokenWith(0, "a"));
  EXPECT_NE(line.find("\"index\":0"), std::string::npos) << line;
  EXPECT_NE(line.find("\"tokenId\":0"), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

}  // namespace

}  // namespace txl::cli
