#include "client/cli/generate_flags.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace txl::cli {
namespace {

using ::testing::ElementsAre;

absl::StatusOr<v1::GenerateRequest> Request(const std::string& arguments) {
  CLI::App app;
  GenerateFlags flags;
  AddPromptFlags(app, &flags);
  AddSamplingFlags(app, &flags);
  AddOutputFlags(app, &flags);
  app.parse(arguments);
  return MakeGenerateRequest(flags);
}

TEST(GenerateFlags, WithoutFlagsEveryFieldIsAbsent) {
  const auto request = Request("");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->prompt_case(), v1::GenerateRequest::PROMPT_NOT_SET);
  EXPECT_EQ(request->ByteSizeLong(),
            [] {  // three empty sub-messages
              v1::GenerateRequest empty;
              empty.mutable_sampling();
              empty.mutable_stop();
              empty.mutable_output();
              return empty.ByteSizeLong();
            }());
}

TEST(GenerateFlags, EverySamplingFlagSetsItsField) {
  const auto request = Request(
      "--temperature 0.5 --top-k 3 --top-p 0.25 --min-p 0.125 --typical-p 0.75 "
      "--repetition-penalty 1.5 --presence-penalty -1 --frequency-penalty 2 "
      "--penalty-window 9 --logit-bias 4=-100 --logit-bias 5=1.5 "
      "--seed 18446744073709551615 --min-tokens 6 --allowed-tokens 8,0,8 "
      "--follow-kinds");
  ASSERT_TRUE(request.ok()) << request.status();
  v1::SamplingParams expected;
  expected.set_temperature(0.5);
  expected.set_top_k(3);
  expected.set_top_p(0.25);
  expected.set_min_p(0.125);
  expected.set_typical_p(0.75);
  expected.set_repetition_penalty(1.5);
  expected.set_presence_penalty(-1);
  expected.set_frequency_penalty(2);
  expected.set_penalty_window(9);
  (*expected.mutable_logit_bias())[4] = -100;
  (*expected.mutable_logit_bias())[5] = 1.5;
  expected.set_seed(18446744073709551615u);
  expected.set_min_tokens(6);
  for (const uint32_t id : {8, 0, 8}) expected.add_allowed_token_ids(id);
  expected.set_follow_kinds(true);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(
      request->sampling(), expected))
      << request->sampling().DebugString();
}

TEST(GenerateFlags, AZeroThatIsGivenIsPresent) {
  const auto request = Request("--temperature 0 --max-tokens 0 --seed 0");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_TRUE(request->sampling().has_temperature());
  EXPECT_TRUE(request->sampling().has_seed());
  EXPECT_TRUE(request->stop().has_max_tokens());
}

TEST(GenerateFlags, KindsAreFollowedAsTheModelSaysUnlessAFlagDoes) {
  EXPECT_FALSE(Request("")->sampling().has_follow_kinds());
  const auto off = Request("--no-follow-kinds");
  EXPECT_TRUE(off->sampling().has_follow_kinds());
  EXPECT_FALSE(off->sampling().follow_kinds());
}

TEST(GenerateFlags, StopAndOutputFlagsSetTheirFields) {
  const auto request = Request(
      "--max-tokens 7 --stop END --stop 'two words' --stop-token 3 "
      "--ignore-end-token --include-stop-text --logprobs 2 --token-bytes "
      "--stop-after 0=8 --logprob-tokens 9,4");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->stop().max_tokens(), 7);
  EXPECT_THAT(request->stop().stop_texts(), ElementsAre("END", "two words"));
  EXPECT_THAT(request->stop().stop_token_ids(), ElementsAre(3));
  EXPECT_TRUE(request->stop().ignore_end_token());
  EXPECT_TRUE(request->stop().include_stop_text());
  EXPECT_EQ(request->output().logprobs(), 2u);
  EXPECT_TRUE(request->output().include_token_bytes());
  EXPECT_EQ(request->stop().token_count().ShortDebugString(), "id: 0 count: 8");
  EXPECT_THAT(request->output().logprob_token_ids(), ElementsAre(9, 4));
}

TEST(GenerateFlags, TextOrTokensAreThePrompt) {
  auto text = Request("--session s --prompt 'To be' --request-id r");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->text(), "To be");
  EXPECT_EQ(text->session_id(), "s");
  EXPECT_EQ(text->request_id(), "r");
  auto tokens = Request("--tokens 1,2,3 --expected-position 0");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_THAT(tokens->tokens().ids(), ElementsAre(1, 2, 3));
  EXPECT_TRUE(tokens->has_expected_position());
}

TEST(GenerateFlags, ATokenThatIsMissingIsNotLeftOut) {
  EXPECT_THROW((void)Request("--tokens 1,,3"), CLI::ValidationError);
  EXPECT_THROW((void)Request("--tokens 1,2,"), CLI::ValidationError);
}

TEST(GenerateFlags, WhatBecomesOfUnknownTextIsAWord) {
  EXPECT_EQ(Request("--prompt a")->unknown(), v1::UNKNOWN_TEXT_UNSPECIFIED);
  EXPECT_EQ(Request("--prompt a --unknown skip")->unknown(),
            v1::UNKNOWN_TEXT_SKIP);
  EXPECT_EQ(Request("--prompt a --unknown unk")->unknown(),
            v1::UNKNOWN_TEXT_SYMBOL);
}

TEST(GenerateFlags, AnEmptyPromptIsAPromptForTheServerToRefuse) {
  CLI::App app;
  GenerateFlags flags;
  AddPromptFlags(app, &flags);
  const char* argv[] = {"txl", "--prompt", ""};
  app.parse(3, argv);
  const auto request = MakeGenerateRequest(flags);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->prompt_case(), v1::GenerateRequest::kText);
}

TEST(GenerateFlags, TextAndTokensTogetherAreRefused) {
  EXPECT_THROW((void)Request("--prompt a --tokens 1"), CLI::ParseError);
}

TEST(GenerateFlags, APairThatIsNoneIsNamed) {
  for (const std::string flag : {"--logit-bias", "--stop-after"}) {
    for (const char* entry : {"5", "=1", "5=", "x=1", "5=y", "-1=2"}) {
      const auto request = Request(flag + "=" + entry);
      EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument)
          << entry;
      EXPECT_NE(request.status().message().find(entry), std::string::npos);
      EXPECT_NE(request.status().message().find(flag), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace txl::cli
