#include "server/http/completion_json.h"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "model/text/byte_vocabulary.h"
#include "server/http/http_options.h"

namespace txl {
namespace {

using ::testing::SizeIs;
using Json = nlohmann::json;
constexpr float kNever = -std::numeric_limits<float>::infinity();

v1::Token Token(uint32_t id, float logprob,
                std::vector<std::pair<uint32_t, float>> top = {}) {
  v1::Token token;
  token.set_token_id(id);
  token.set_logprob(logprob);
  for (const auto& [other, of_other] : top) {
    v1::TokenLogprob* one = token.add_top_logprobs();
    one->set_token_id(other);
    one->set_logprob(of_other);
  }
  return token;
}

class LogprobListsTest : public ::testing::Test {
 protected:
  Json Lists(const v1::Token& token, bool as_ids = false) {
    return LogprobLists({PlaceOf(token, 7)}, TokenNames(&vocabulary_, as_ids));
  }
  const ByteVocabulary vocabulary_;
};

TEST_F(LogprobListsTest, HasNameProbabilityAlternativesAndOffset) {
  const Json lists = Lists(Token('a', -0.1f, {{'a', -0.1f}, {'b', -2.5f}}));
  EXPECT_EQ(lists["tokens"], Json({"a"}));
  EXPECT_EQ(lists["text_offset"], Json({7}));
  EXPECT_EQ(lists["token_logprobs"], Json({double{-0.1f}}));
  EXPECT_EQ(lists["top_logprobs"],
            Json::array({{{"a", double{-0.1f}}, {"b", -2.5}}}));
}

TEST_F(LogprobListsTest, TheChosenTokenIsAlwaysAmongTheAlternatives) {
  const Json lists = Lists(Token('c', -9.25f, {{'a', -0.1f}}));
  EXPECT_EQ(lists["top_logprobs"][0]["c"].dump(),
            lists["token_logprobs"][0].dump());
  EXPECT_THAT(lists["top_logprobs"][0], SizeIs(2));
}

TEST_F(LogprobListsTest, OfTwoTokensWithOneNameTheLikelierHasIt) {
  // Bytes that begin a character are the same sign in JSON.
  const Json lists =
      Lists(Token(0xC3, -3.0f, {{0xC4, -1.5f}, {0xC3, -3.0f}, {'a', -4.0f}}));
  EXPECT_EQ(lists["tokens"], Json({"\uFFFD"}));
  EXPECT_EQ(lists["top_logprobs"][0]["\uFFFD"], -1.5);
  EXPECT_THAT(lists["top_logprobs"][0], SizeIs(2));
  const Json ids =
      Lists(Token(0xC3, -3.0f, {{0xC4, -1.5f}, {0xC3, -3.0f}}), true);
  EXPECT_EQ(ids["tokens"], Json({"token_id:195"}));
  EXPECT_EQ(ids["top_logprobs"][0],
            Json({{"token_id:195", -3.0}, {"token_id:196", -1.5}}));
}

TEST_F(LogprobListsTest, AProbabilityOfZeroIsANumberThatJsonHas) {
  const Json lists = Lists(Token('a', kNever, {{'a', kNever}, {'b', 0.0f}}));
  EXPECT_EQ(lists["token_logprobs"][0], kNeverLogprob);
  EXPECT_EQ(lists["top_logprobs"][0]["a"], kNeverLogprob);
  EXPECT_EQ(lists["top_logprobs"][0]["b"], 0.0);
}

TEST_F(LogprobListsTest, AFirstTokenWithoutContextHasNullInBothLists) {
  v1::ScoredToken first;
  first.set_token_id('a');
  v1::ScoredToken second = first;
  second.set_logprob(-1);
  const Json json = LogprobLists({PlaceOf(first, 0), PlaceOf(second, 1)},
                                 TokenNames(&vocabulary_, false));
  EXPECT_EQ(json["token_logprobs"], Json({nullptr, -1.0}));
  EXPECT_EQ(json["top_logprobs"], Json({nullptr, {{"a", -1.0}}}));
}

TEST(TokenNames, AreIdsWithoutAVocabulary) {
  EXPECT_EQ(TokenNames(nullptr, false).Of(7), "token_id:7");
}

TEST(TokenNames, BytesAreThoseThatTheNameCannotShow) {
  const ByteVocabulary vocabulary;
  EXPECT_EQ(TokenNames(&vocabulary, false).Bytes(0xC3), Json({0xC3}));
  EXPECT_EQ(TokenNames(&vocabulary, true).Bytes('a'), Json({'a'}));
  EXPECT_EQ(TokenNames(nullptr, false).Bytes('a'), Json());
}

TEST(FinishJson, IsOpenAisWord) {
  EXPECT_EQ(FinishJson(v1::FINISH_REASON_UNSPECIFIED), Json());
  EXPECT_EQ(FinishJson(v1::FINISH_REASON_MAX_TOKENS), "length");
  for (const v1::FinishReason reason :
       {v1::FINISH_REASON_STOP_TEXT, v1::FINISH_REASON_STOP_TOKEN,
        v1::FINISH_REASON_END_TOKEN}) {
    EXPECT_EQ(FinishJson(reason), "stop");
  }
}

TEST(UsageJson, AddsUp) {
  EXPECT_EQ(UsageJson(3, 2, 4),
            Json({{"prompt_tokens", 3},
                  {"completion_tokens", 4},
                  {"total_tokens", 7},
                  {"prompt_tokens_details", {{"cached_tokens", 2}}}}));
}

TEST(CompletionJson, HasTheHeadAndTheStartOfTheFingerprint) {
  const CompletionHead head = {"cmpl-1", "text_completion", 12, "verona",
                               "0123456789abcdef0123"};
  EXPECT_EQ(CompletionJson(head, Json::array()),
            Json({{"id", "cmpl-1"},
                  {"object", "text_completion"},
                  {"created", 12},
                  {"model", "verona"},
                  {"system_fingerprint", "0123456789ab"},
                  {"choices", Json::array()}}));
}

using Json = nlohmann::json;

class ChatJson : public ::testing::Test {
 protected:
  ChatJson() {
    choice_.text = "hm";
    choice_.reason = v1::FINISH_REASON_MAX_TOKENS;
    choice_.ids = {'h'};
    TokenPlace place;
    place.id = 'h';
    place.logprob = -0.5f;
    place.top = {{'a', -0.25f},
                 {0xC3, -std::numeric_limits<float>::infinity()}};
    choice_.places = {place};
  }
  ChoiceFormat Format(bool logprobs, bool ids) const {
    return {logprobs, ids, TokenNames(&vocabulary_, false)};
  }

  const ByteVocabulary vocabulary_;
  CompletionChoice choice_;
};

TEST_F(ChatJson, AWholeChoiceIsAMessage) {
  EXPECT_EQ(
      ChatChoiceJson(2, choice_, Format(false, false)),
      Json({{"index", 2},
            {"message",
             {{"role", "assistant"}, {"content", "hm"}, {"refusal", nullptr}}},
            {"logprobs", nullptr},
            {"finish_reason", "length"}}));
}

TEST_F(ChatJson, APartIsADeltaAndTheFirstSaysWhoSpeaks) {
  const ChoiceFormat format = Format(false, true);
  EXPECT_EQ(ChatDeltaJson(0, choice_, format),
            Json({{"index", 0},
                  {"delta", {{"content", "hm"}}},
                  {"logprobs", nullptr},
                  {"finish_reason", "length"},
                  {"token_ids", {'h'}}}));
  CompletionChoice first;
  first.begins = true;
  EXPECT_EQ(ChatDeltaJson(0, first, format)["delta"],
            Json({{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(ChatDeltaJson(0, CompletionChoice(), format)["delta"],
            Json::object());
}

TEST_F(ChatJson, ATokenHasItsNameItsBytesAndItsAlternatives) {
  const Json token =
      ChatChoiceJson(0, choice_, Format(true, false))["logprobs"]["content"][0];
  EXPECT_EQ(token,
            Json({{"token", "h"},
                  {"bytes", {'h'}},
                  {"logprob", -0.5},
                  {"top_logprobs",
                   {{{"token", "a"}, {"bytes", {'a'}}, {"logprob", -0.25}},
                    {{"token", "\uFFFD"},
                     {"bytes", {0xC3}},
                     {"logprob", kNeverLogprob}}}}}));
}

}  // namespace

}  // namespace txl
