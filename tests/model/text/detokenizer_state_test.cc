// A detokenizer that is written down and read again goes on as if nothing had
// happened.

#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/text/byte_vocabulary.h"
#include "model/text/utf8.h"
#include "model/text/wikitext_vocabulary.h"
#include "tests/model/text/every_vocabulary.h"

namespace txl {
namespace {

// Words at which Moses' rules turn: quotes of every kind, contractions,
// currency, ideographs, joins, and spaces and spaces inside a symbol.
std::unique_ptr<Vocabulary> MosesVocabulary() {
  WikitextRules rules;
  rules.line_id = 0;
  return std::make_unique<WikitextVocabulary>(
      std::vector<std::string>{
          "<eos>", "a",       "days",   "'",      "''",      "\"",
          "`",     "\u201E",  "\u201C", "'s",     "'\u00E9", "@-@",
          "@,@",   "@.@",     ",",      ").",     "$",       "(\u20AC",
          "3",     "\u4E2D",  "\uAC00", "-",      "'-",      "&quot;",
          " ",     "b \" c ", " @,@ ",  "\u3000", "\u00E9",  "@"},
      rules);
}

std::vector<NamedVocabulary> Vocabularies() {
  std::vector<NamedVocabulary> all = EveryVocabulary();
  all.push_back({"words of Moses", MosesVocabulary()});
  return all;
}

std::vector<int32_t> RandomIds(const Vocabulary& vocabulary, size_t count,
                               std::mt19937& random) {
  // Few different ids make more of the rare rules meet.
  std::vector<int32_t> some(8);
  for (int32_t& id : some) {
    id = static_cast<int32_t>(random() % vocabulary.size());
  }
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = some[random() % some.size()];
  return ids;
}

// What each id of `ids` adds, Flush last; a flush comes before ids that are
// multiples of 5 at multiples of 7.
std::vector<std::string> Pieces(Detokenizer& detokenizer,
                                const std::vector<int32_t>& ids, size_t from) {
  std::vector<std::string> pieces;
  for (size_t i = from; i < ids.size(); ++i) {
    std::string piece;
    if (ids[i] % 5 == 0 && i % 7 == 0) piece = detokenizer.Flush();
    pieces.push_back(piece + detokenizer.Add(ids[i]));
  }
  pieces.push_back(detokenizer.Flush());
  return pieces;
}

TEST(DetokenizerState, GoesOnAtEveryCutAsTheOriginalDoes) {
  std::mt19937 random(23);
  for (const NamedVocabulary& named : Vocabularies()) {
    for (int run = 0; run < 60; ++run) {
      const std::vector<int32_t> ids = RandomIds(*named.vocabulary, 30, random);
      const auto original = named.vocabulary->NewDetokenizer();
      for (size_t cut = 0; cut < ids.size(); ++cut) {
        const std::string state = original->State();
        auto restored = named.vocabulary->RestoreDetokenizer(state);
        ASSERT_TRUE(restored.ok()) << named.name << " refuses " << state;
        EXPECT_EQ((*restored)->State(), state) << named.name;
        const auto rest = original->Clone();
        ASSERT_EQ(Pieces(**restored, ids, cut), Pieces(*rest, ids, cut))
            << named.name << " from " << state;
        EXPECT_EQ((*restored)->State(), rest->State()) << named.name;
        if (ids[cut] % 5 == 0 && cut % 7 == 0) original->Flush();
        original->Add(ids[cut]);
      }
    }
  }
}

TEST(DetokenizerState, AFreshOneHasNone) {
  for (const NamedVocabulary& named : Vocabularies()) {
    EXPECT_EQ(named.vocabulary->NewDetokenizer()->State(), "") << named.name;
  }
}

TEST(DetokenizerState, IsNotChangedByAnIdOutsideTheVocabularyWhichHasNoText) {
  constexpr int32_t kLast = std::numeric_limits<int32_t>::max();
  for (const NamedVocabulary& named : Vocabularies()) {
    const Vocabulary& vocabulary = *named.vocabulary;
    const auto size = static_cast<int32_t>(vocabulary.size());
    for (const int32_t id : {size, size + 1000, kLast, -1, -kLast - 1}) {
      const auto detokenizer = vocabulary.NewDetokenizer();
      detokenizer->Add(0);
      const std::string state = detokenizer->State();
      EXPECT_EQ(detokenizer->Add(id), "") << named.name << " " << id;
      EXPECT_EQ(detokenizer->State(), state) << named.name << " " << id;
      EXPECT_EQ(vocabulary.TokenBytes(id), "") << named.name << " " << id;
      const absl::Status decoded = vocabulary.Decode({0, id}).status();
      EXPECT_TRUE(absl::IsOutOfRange(decoded)) << named.name << decoded;
      EXPECT_THAT(decoded.message(), testing::HasSubstr(absl::StrCat(id)));
    }
  }
}

TEST(DetokenizerState, StaysSmallHoweverLongTheText) {
  std::mt19937 random(4);
  for (const NamedVocabulary& named : Vocabularies()) {
    const auto detokenizer = named.vocabulary->NewDetokenizer();
    for (const int32_t id : RandomIds(*named.vocabulary, 5000, random)) {
      detokenizer->Add(id);
      ASSERT_LE(detokenizer->State().size(), 40u) << named.name;
    }
  }
}

TEST(DetokenizerState, SaysWhatIsHeld) {
  const auto bytes = ByteVocabulary().NewDetokenizer();
  bytes->Add(0xE2);
  bytes->Add(0x82);
  EXPECT_EQ(bytes->State(), "\xE2\x82");
  const auto vocabulary = MosesVocabulary();
  const auto words = vocabulary->NewDetokenizer();
  for (const int32_t id : {1, 12, 5, 1, 14}) words->Add(id);
  // After: a @,@ "a with a comma held and the quote open.
  EXPECT_EQ(words->State(), "30000 , a \"");
}

TEST(DetokenizerState, WhatStateNeverMakesIsRefused) {
  const auto refused = [](const Vocabulary& vocabulary, std::string state) {
    return absl::IsInvalidArgument(
        vocabulary.RestoreDetokenizer(state).status());
  };
  const std::string never[] = {"x",
                               "e\x82",
                               "\x82",
                               "\xC3\xA9",
                               "\xF8",
                               "\xE2\x82\xAC",
                               std::string("\0", 1)};
  for (const NamedVocabulary& named : Vocabularies()) {
    for (const std::string& state : never) {
      EXPECT_TRUE(refused(*named.vocabulary, state)) << named.name << state;
    }
  }
  const auto moses = MosesVocabulary();
  const std::string bad[] = {
      "00000  ",         // a fresh one's is empty
      "00000",           // nothing follows
      "0000  a",         // four digits
      "50000 s a",       // a contraction is written as an ordinary word
      "00500  a",        // more held than there is
      "10000 ab a",      // more than the end of an ordinary word
      "10000  a",        // no word
      "00000 a a",       // a word that has not begun
      "00000  ab",       // two characters
      "00100 ",          // glued to nothing
      "01000  ",         // joined to nothing
      "30000 a a",       // a letter is no punctuation
      "31000 , a",       // punctuation is not joined
      "40000 , a",       // and no quote
      "10000 \xFF a",    // no character
      "10000 a \xE2",    // nor here
      "10000 \n a",      // whitespace is in no word
      "00000  a a",      // a letter is no open quote
      "00000  a ` \"",   // not in order
      "00000  a ' '",    // twice
      "00000  a \u201C"  // counts as a straight one
  };
  for (const std::string& state : bad) {
    EXPECT_TRUE(refused(*moses, state)) << state;
  }
}

// Damaged states are refused or are those of another text; nothing else
// happens, and text stays valid.
TEST(DetokenizerState, DamageIsRefusedOrAnotherState) {
  std::mt19937 random(5);
  int accepted = 0;
  for (const NamedVocabulary& named : Vocabularies()) {
    std::set<std::string> states;
    const auto detokenizer = named.vocabulary->NewDetokenizer();
    for (const int32_t id : RandomIds(*named.vocabulary, 100, random)) {
      detokenizer->Add(id);
      states.insert(detokenizer->State());
    }
    for (const std::string& state : states) {
      for (int i = 0; i < 50; ++i) {
        std::string damaged = state + "\x82";
        damaged[random() % damaged.size()] = static_cast<char>(random());
        damaged.resize(random() % (damaged.size() + 1));
        auto restored = named.vocabulary->RestoreDetokenizer(damaged);
        if (!restored.ok()) continue;
        ++accepted;
        ASSERT_EQ((*restored)->State(), damaged) << named.name;
        for (const int32_t id : RandomIds(*named.vocabulary, 5, random)) {
          ASSERT_TRUE(IsValidUtf8((*restored)->Add(id))) << named.name;
        }
      }
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace txl
