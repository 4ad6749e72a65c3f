#include "server/scheduler/turn_text.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "model/text/byte_vocabulary.h"

namespace txl {
namespace {

std::vector<int32_t> Bytes(const std::string& text) {
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

StopRules Rules(int32_t max_tokens, std::vector<std::string> stop_texts = {},
                std::vector<int32_t> stop_ids = {},
                std::vector<int32_t> end_ids = {}) {
  StopRules rules;
  rules.max_tokens = max_tokens;
  rules.stop_texts = std::move(stop_texts);
  rules.stop_token_ids = std::move(stop_ids);
  rules.end_token_ids = std::move(end_ids);
  return rules;
}

TurnText TextOf(StopRules rules) {
  return TurnText(std::move(rules), ByteVocabulary().NewDetokenizer());
}

// Adds bytes until a reason comes; the certain text of each.
struct Said {
  std::vector<std::string> pieces;
  std::vector<int> held_back;
  TurnText::Piece last;
};
Said Say(TurnText& text, const std::string& bytes) {
  Said said;
  for (int32_t id : Bytes(bytes)) {
    said.last = text.AddGenerated(id);
    said.pieces.push_back(said.last.text);
    said.held_back.push_back(said.last.held_back);
    if (said.last.reason.has_value()) break;
  }
  return said;
}

using Pieces = std::vector<std::string>;

TEST(TurnText, EachTokenCarriesTheTextThatBecameCertain) {
  TurnText text = TextOf({});
  const Said said = Say(text, "a\xC3\xA9z");
  EXPECT_EQ(said.pieces, (Pieces{"a", "", "\xC3\xA9", "z"}));
  EXPECT_FALSE(said.last.reason.has_value());
  EXPECT_EQ(text.TakeRest(), "");
}

TEST(TurnText, AnIncompleteCharacterComesAsReplacementAndTheSessionKeepsIt) {
  TurnText text = TextOf(Rules(2));
  const Said said = Say(text, "a\xC3");
  EXPECT_EQ(said.last.reason, FinishReason::kMaxTokens);
  EXPECT_EQ(text.TakeRest(), "\xEF\xBF\xBD");
  TurnText next({}, text.TakeDetokenizer());
  EXPECT_EQ(next.AddGenerated(0xA9).text, "\xC3\xA9");
}

TEST(TurnText, AnInputIsATextOfItsOwn) {
  TurnText text = TextOf({});
  Say(text, "\xC3");
  EXPECT_EQ(text.AddInput(Bytes("\xA9q\xC3")),
            (Pieces{"\xEF\xBF\xBD", "q", "\xEF\xBF\xBD"}));
  EXPECT_EQ(text.AddGenerated(0xA9).text, "\xEF\xBF\xBD");
}

TEST(TurnText, AStopTextIsHeldBackAndCutOff) {
  TurnText text = TextOf(Rules(99, {"END"}));
  const Said said = Say(text, "xENdyENDzz");
  EXPECT_EQ(said.pieces, (Pieces{"x", "", "", "ENd", "y", "", "", ""}));
  EXPECT_EQ(said.last.reason, FinishReason::kStopText);
  EXPECT_EQ(said.last.matched_stop_text, "END");
  EXPECT_EQ(text.TakeRest(), "");
}

// A token's text begins so far behind the text that was sent before it.
TEST(TurnText, SaysHowMuchIsHeldBackBeforeEachToken) {
  TurnText text = TextOf(Rules(99, {"\xC3\xA9ND"}));
  const Said said = Say(text, "x\xC3\xA9Nd\xC3\xA9ND");
  EXPECT_EQ(said.pieces,
            (Pieces{"x", "", "", "", "\xC3\xA9Nd", "", "", "", ""}));
  EXPECT_EQ(said.held_back, (std::vector<int>{0, 0, 0, 1, 2, 0, 0, 1, 2}));
  TurnText plain = TextOf({});
  EXPECT_EQ(Say(plain, "x\xC3\xA9N").held_back, (std::vector<int>{0, 0, 0, 0}));
}

TEST(TurnText, AStopTextIsReportedWhereItIsAskedFor) {
  StopRules rules = Rules(99, {"END"});
  rules.include_stop_text = true;
  TurnText text = TextOf(rules);
  EXPECT_EQ(Say(text, "END").last.text, "END");
}

TEST(TurnText, HeldTextComesAsTheRestOfAnyOtherEnd) {
  TurnText text = TextOf(Rules(3, {"END"}));
  const Said said = Say(text, "xEN");
  EXPECT_EQ(said.pieces, (Pieces{"x", "", ""}));
  EXPECT_EQ(text.TakeRest(), "EN");
}

TEST(TurnText, AnEndTokenHasNoTextAndBreaksAnIncompleteCharacter) {
  TurnText text = TextOf(Rules(99, {"END"}, {}, {'!'}));
  const Said said = Say(text, "E\xC3!");
  EXPECT_EQ(said.last.text, "");
  EXPECT_EQ(said.last.reason, FinishReason::kEndToken);
  EXPECT_EQ(text.TakeRest(), "E\xEF\xBF\xBD");
}

TEST(TurnText, AnIgnoredEndTokenIsATokenLikeOthers) {
  StopRules rules = Rules(99, {}, {}, {'!'});
  rules.ignore_end_token = true;
  TurnText text = TextOf(rules);
  EXPECT_EQ(Say(text, "a!b").pieces, (Pieces{"a", "!", "b"}));
}

TEST(TurnText, AStopTokenKeepsItsTextAndWhatWasHeld) {
  TurnText text = TextOf(Rules(99, {"END"}, {'N'}));
  const Said said = Say(text, "EN");
  EXPECT_EQ(said.pieces, (Pieces{"", "EN"}));
  EXPECT_EQ(said.last.reason, FinishReason::kStopToken);
}

TEST(TurnText, ACountedTokenStopsAtItsLastOccurrence) {
  StopRules rules = Rules(99, {"|n"});
  rules.token_count = {'|', 3};
  TurnText text = TextOf(rules);
  const Said said = Say(text, "a|b||");
  EXPECT_EQ(said.pieces, (Pieces{"a", "", "|b", "", "||"}));
  EXPECT_EQ(said.last.reason, FinishReason::kStopToken);
  EXPECT_EQ(text.TakeRest(), "");
}

TEST(TurnText, TheInputCountsNoToken) {
  StopRules rules = Rules(3);
  rules.token_count = {'|', 1};
  TurnText text = TextOf(rules);
  text.AddInput(Bytes("||"));
  EXPECT_EQ(Say(text, "abc").last.reason, FinishReason::kMaxTokens);
}

TEST(TurnText, RulesHoldInTheirOrder) {
  // One token that meets all four.
  StopRules rules = Rules(1, {"x"}, {'x'}, {'x'});
  TurnText end = TextOf(rules);
  EXPECT_EQ(Say(end, "x").last.reason, FinishReason::kEndToken);
  rules.end_token_ids.clear();
  TurnText stop = TextOf(rules);
  EXPECT_EQ(Say(stop, "x").last.reason, FinishReason::kStopToken);
  rules.stop_token_ids.clear();
  TurnText stop_text = TextOf(rules);
  EXPECT_EQ(Say(stop_text, "x").last.reason, FinishReason::kStopText);
  rules.stop_texts.clear();
  TurnText most = TextOf(rules);
  EXPECT_EQ(Say(most, "x").last.reason, FinishReason::kMaxTokens);
}

TEST(TurnText, AModelWithoutVocabularyHasNoText) {
  TurnText text(Rules(99, {}, {5}), nullptr);
  EXPECT_EQ(text.AddInput(std::vector<int32_t>{1, 2}), (Pieces{"", ""}));
  EXPECT_EQ(text.AddGenerated(4).text, "");
  EXPECT_EQ(text.AddGenerated(5).reason, FinishReason::kStopToken);
  EXPECT_EQ(text.TakeRest(), "");
  EXPECT_EQ(text.TakeDetokenizer(), nullptr);
}

}  // namespace
}  // namespace txl
