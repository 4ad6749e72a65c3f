#include "server/http/chat_json.h"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "model/text/byte_vocabulary.h"
#include "server/http/http_options.h"

namespace txl {
namespace {

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
