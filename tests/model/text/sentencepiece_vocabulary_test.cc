#include "model/text/sentencepiece_vocabulary.h"

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/text/utf8.h"
#include "tests/model/text/data_file.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Vocabulary> Load(const std::string& name, int64_t size) {
  auto model = ParseSentencePieceModel(DataFile(name));
  EXPECT_TRUE(model.ok()) << name << ": " << model.status();
  auto vocabulary = SentencePieceVocabulary::Create(*model, size);
  EXPECT_TRUE(vocabulary.ok()) << vocabulary.status();
  return *std::move(vocabulary);
}

// What the original library gives: unigram with byte fallback, rewrites and
// user-defined pieces; BPE; without any tidying; with spaces at word ends; with
// user-defined pieces among better and worse ones, unigram and BPE.
TEST(SentencePieceVocabulary, EncodesLikeTheOriginalLibrary) {
  const nlohmann::json data = DataJson("sentencepiece.json");
  ASSERT_EQ(data["models"].size(), 6u);
  for (const auto& [name, expected] : data["models"].items()) {
    const auto vocabulary = Load(name, expected["size"]);
    EXPECT_EQ(vocabulary->size(), expected["size"]);
    for (const nlohmann::json& c : expected["encode"]) {
      EXPECT_EQ(*vocabulary->Encode(c["text"].get<std::string>()),
                c["ids"].get<std::vector<int32_t>>())
          << name << ": " << c["text"];
    }
  }
}

// U+FFFD once for a run of them: the library writes one per byte.
std::string OneReplacement(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const std::string character = text.substr(
        at, FirstCharacter(absl::string_view(text).substr(at)).length);
    const bool again = character == "\uFFFD" && out.size() >= 3 &&
                       out.substr(out.size() - 3) == "\uFFFD";
    if (!again) out += character;
    at += character.size();
  }
  return out;
}

TEST(SentencePieceVocabulary, StreamsWhatTheOriginalLibraryDecodes) {
  const nlohmann::json data = DataJson("sentencepiece.json");
  for (const auto& [name, expected] : data["models"].items()) {
    const auto vocabulary = Load(name, expected["size"]);
    for (const nlohmann::json& c : expected["decode"]) {
      const auto detokenizer = vocabulary->NewDetokenizer();
      std::string streamed;
      for (const int32_t id : c["ids"]) {
        const std::string piece = detokenizer->Add(id);
        ASSERT_TRUE(IsValidUtf8(piece));
        streamed += piece;
      }
      streamed += detokenizer->Flush();
      EXPECT_EQ(OneReplacement(streamed),
                OneReplacement(c["text"].get<std::string>()))
          << name << ": " << c["ids"];
    }
  }
}

TEST(SentencePieceVocabulary, TextWithoutExtraSpacesComesBack) {
  const auto vocabulary = Load("unigram.model", 600);
  for (const std::string text :
       {"But, soft! what light through yonder window breaks?",
        "\u4E2D\u6587 and \U0001F600", "one"}) {
    EXPECT_EQ(*vocabulary->Decode(*vocabulary->Encode(text)), text);
  }
}

TEST(SentencePieceVocabulary, IdsAboveThePiecesHaveNoText) {
  const auto vocabulary = Load("bpe.model", 512);
  EXPECT_EQ(vocabulary->size(), 512);
  EXPECT_EQ(vocabulary->TokenBytes(511), "");
  const auto detokenizer = vocabulary->NewDetokenizer();
  EXPECT_EQ(detokenizer->Add(511), "");
}

TEST(SentencePieceVocabulary, TokensKnowTheirBytes) {
  const auto vocabulary = Load("unigram.model", 600);
  const auto hello = *vocabulary->Encode("\u00FF");  // C3 BF
  ASSERT_GE(hello.size(), 2u);
  EXPECT_EQ(vocabulary->TokenBytes(hello[hello.size() - 2]), "\xC3");
  EXPECT_EQ(vocabulary->TokenBytes(hello.back()), "\xBF");
  EXPECT_EQ(vocabulary->TokenBytes(1), "");  // <s>
}

TEST(SentencePieceVocabulary, IllFormedTextIsRefused) {
  EXPECT_FALSE(Load("bpe.model", 500)->Encode("a\xFF").ok());
}

std::string ErrorOf(const std::string& content) {
  const auto model = ParseSentencePieceModel(content);
  return std::string(model.status().message());
}

TEST(SentencePieceModel, KnowsPiecesAndRules) {
  const auto model = ParseSentencePieceModel(DataFile("plain.model"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->pieces.size(), 400u);
  EXPECT_EQ(model->pieces[0].text, "<unk>");
  EXPECT_EQ(model->pieces[3].type, PieceType::kUserDefined);
  EXPECT_FALSE(model->add_dummy_prefix);
  EXPECT_FALSE(model->remove_extra_whitespace);
  EXPECT_FALSE(model->byte_fallback);
}

TEST(SentencePieceModel, OtherFilesAreRefused) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("SentencePiece"));
  EXPECT_THAT(ErrorOf("the\nof\nand\n"), HasSubstr("SentencePiece"));
  EXPECT_THAT(ErrorOf(std::string(100, '\xFF')), HasSubstr("SentencePiece"));
}

TEST(SentencePieceModel, ACutOffFileIsRefusedOrLacksItsEnd) {
  const std::string whole = DataFile("plain.model");
  size_t refused = 0;
  for (size_t size = 0; size < whole.size(); size += 13) {
    const auto model = ParseSentencePieceModel(whole.substr(0, size));
    refused += !model.ok();
    if (model.ok()) {
      EXPECT_LE(model->pieces.size(), 400u);
    }
  }
  EXPECT_GT(refused, whole.size() / 13 / 2);
}

// One message of pieces: field 1 of each is the text, field 3 the type.
std::string Piece(const std::string& text, char type) {
  std::string piece = "\x0A";
  piece += static_cast<char>(text.size());
  piece += text + "\x18" + type;
  return std::string("\x0A") + static_cast<char>(piece.size()) + piece;
}

TEST(SentencePieceModel, BadPiecesAreNamed) {
  const std::string unknown = Piece("<unk>", 2);
  EXPECT_EQ(ErrorOf(unknown + Piece("a", 1)), "");
  EXPECT_THAT(ErrorOf(unknown + Piece("a", 1) + Piece("a", 1)),
              HasSubstr("piece 2"));
  EXPECT_THAT(ErrorOf(unknown + Piece("", 1)), HasSubstr("piece 1: is empty"));
  EXPECT_THAT(ErrorOf(unknown + Piece("\xFF", 1)), HasSubstr("UTF-8"));
  EXPECT_THAT(ErrorOf(unknown + Piece("a", 9)), HasSubstr("type"));
  EXPECT_THAT(ErrorOf(Piece("a", 1)), HasSubstr("unknown"));
  EXPECT_THAT(ErrorOf(unknown + Piece("<0xZZ>", 6)), HasSubstr("bytes"));
}

TEST(SentencePieceModel, AnUnknownAlgorithmIsRefused) {
  EXPECT_THAT(ErrorOf(Piece("<unk>", 2) + "\x12\x02\x18\x04"),
              HasSubstr("only unigram and BPE"));
}

TEST(CharacterMap, DamagedTablesAreRefusedAndNeverLoop) {
  const auto model = ParseSentencePieceModel(DataFile("unigram.model"));
  ASSERT_TRUE(model.ok());
  const std::string& map = model->character_map;
  ASSERT_GT(map.size(), 100u);
  EXPECT_FALSE(CharacterMap::Parse(map.substr(0, 3)).ok());
  EXPECT_FALSE(CharacterMap::Parse(map.substr(0, 40)).ok());
  EXPECT_FALSE(CharacterMap::Parse("\xFF\xFF\xFF\xFF" + map.substr(4)).ok());
  for (size_t at = 4; at < map.size() - 1; ++at) {
    SentencePieceModel damaged = *model;
    damaged.character_map[at] ^= '\x5A';
    const auto vocabulary = SentencePieceVocabulary::Create(damaged, 600);
    if (!vocabulary.ok()) continue;
    EXPECT_TRUE((*vocabulary)->Encode("e\u0301 \uFF21\u2026  x").ok());
  }
}

}  // namespace
}  // namespace txl
