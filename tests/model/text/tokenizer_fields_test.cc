#include "model/text/tokenizer_fields.h"

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/text/utf8.h"
#include "model/text/vocabulary_loader.h"
#include "tests/model/text/data_file.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string ErrorOf(const std::string& content, const std::string& name) {
  const auto symbols = ParseSymbolFile(content, name);
  EXPECT_EQ(symbols.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(symbols.status().message());
}

TEST(SymbolFile, EachLineIsASymbol) {
  EXPECT_THAT(*ParseSymbolFile("the\nof\n<unk>\n", "vocab.txt"),
              ElementsAre("the", "of", "<unk>"));
}

TEST(SymbolFile, TheLastLineNeedsNoLineFeed) {
  EXPECT_THAT(*ParseSymbolFile("a\nb", "vocab.txt"), ElementsAre("a", "b"));
}

TEST(SymbolFile, SymbolsAreTakenAsTheyStand) {
  EXPECT_THAT(*ParseSymbolFile(" \n\t\n\r\n\u00E9\n", "vocab.txt"),
              ElementsAre(" ", "\t", "\r", "\u00E9"));
}

TEST(SymbolFile, AByteOrderMarkIsNoSymbol) {
  EXPECT_THAT(*ParseSymbolFile("\xEF\xBB\xBF<eos>\na\n", "vocab.txt"),
              ElementsAre("<eos>", "a"));
}

TEST(SymbolFile, OtherCodingsAreRefused) {
  using namespace std::string_literals;
  for (const std::string& content :
       {"\xFF\xFE" + "a\0\n\0"s, "\xFE\xFF" + "\0a\0\n"s, "a\0\n\0"s,
        "\xFF\xFE"s}) {
    EXPECT_THAT(ErrorOf(content, "vocab.txt"),
                StartsWith("vocab.txt: is not UTF-8 (UTF-16?)"));
  }
}

TEST(SymbolFile, NoContentIsNoSymbol) {
  EXPECT_THAT(*ParseSymbolFile("", "vocab.txt"), IsEmpty());
  EXPECT_THAT(*ParseSymbolFile("[]", "vocab.json"), IsEmpty());
}

TEST(SymbolFile, JsonNamesSymbolsThatALineCannotHold) {
  EXPECT_THAT(*ParseSymbolFile(R"(["\n", "a", "\u00e9"])", "chars.json"),
              ElementsAre("\n", "a", "\u00E9"));
}

TEST(SymbolFile, ADuplicateIsNamedWithBothLines) {
  const std::string error = ErrorOf("a\nb\nc\nb\n", "vocab.txt");
  EXPECT_THAT(error, StartsWith("vocab.txt: line 4: "));
  EXPECT_THAT(error, HasSubstr("line 2"));
  EXPECT_THAT(ErrorOf(R"(["x", "x"])", "v.json"),
              StartsWith("v.json: element 2: "));
}

TEST(SymbolFile, AnEmptySymbolIsNamedWithItsLine) {
  EXPECT_THAT(ErrorOf("a\n\nb\n", "vocab.txt"),
              StartsWith("vocab.txt: line 2: "));
  EXPECT_THAT(ErrorOf(R"([""])", "v.json"), StartsWith("v.json: element 1: "));
}

TEST(SymbolFile, IllFormedUtf8IsNamedWithItsLine) {
  EXPECT_THAT(ErrorOf("a\nb\n\xFF\n", "vocab.txt"),
              StartsWith("vocab.txt: line 3, byte 1: "));
}

TEST(SymbolFile, AFileWithCarriageReturnsIsRefused) {
  EXPECT_THAT(ErrorOf("a\nthe\r\nof\r\n", "vocab.txt"),
              StartsWith("vocab.txt: line 2: "));
}

TEST(SymbolFile, JsonThatIsNoArrayOfStringsIsRefused) {
  EXPECT_THAT(ErrorOf(R"({"a": 1})", "v.json"), StartsWith("v.json: "));
  EXPECT_THAT(ErrorOf(R"(["a", )", "v.json"), StartsWith("v.json: "));
  EXPECT_THAT(ErrorOf(R"(["a", 1])", "v.json"),
              StartsWith("v.json: element 2: "));
}

}  // namespace

// tokenizer.json of the kinds that public checkpoints need.

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class VocabularyKindsTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::path(testing::TempDir()) /
        (std::string("txl_kinds_") +
         testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& name, const std::string& content) {
    std::ofstream(directory_ / name, std::ios::binary) << content;
  }

  std::unique_ptr<Vocabulary> Load(const std::string& json, int64_t size) {
    Write("tokenizer.json", json);
    auto vocabulary = LoadVocabulary(directory_.string(), size);
    EXPECT_TRUE(vocabulary.ok()) << vocabulary.status();
    return vocabulary.ok() ? *std::move(vocabulary) : nullptr;
  }

  std::string Error(const std::string& json, int64_t size) {
    Write("tokenizer.json", json);
    const auto vocabulary = LoadVocabulary(directory_.string(), size);
    EXPECT_EQ(vocabulary.status().code(), absl::StatusCode::kInvalidArgument)
        << json;
    return std::string(vocabulary.status().message());
  }

  std::filesystem::path directory_;
};

TEST_F(VocabularyKindsTest, ReadsDecimalBytes) {
  Write("v.txt", "32\n101\n195\n169\n");
  const auto vocabulary =
      Load(R"({"kind": "decimal_bytes", "file": "v.txt"})", 4);
  EXPECT_EQ(vocabulary->kind(), "decimal_bytes");
  EXPECT_THAT(*vocabulary->Encode("e \u00E9\n"), ElementsAre(1, 0, 2, 3));
}

TEST_F(VocabularyKindsTest, DecimalBytesMustBeThat) {
  const std::string json = R"({"kind": "decimal_bytes", "file": "v.txt"})";
  for (const char* bad : {"256", "-1", "07", "x", "+5"}) {
    Write("v.txt", std::string("32\n") + bad + "\n");
    EXPECT_THAT(Error(json, 2), HasSubstr("v.txt: symbol 2")) << bad;
  }
}

TEST_F(VocabularyKindsTest, ReadsText8) {
  Write("v.txt", "_\na\nb\n");
  const auto vocabulary = Load(
      R"({"kind": "characters", "file": "v.txt", "space": "_",
          "lower_case": true})",
      3);
  EXPECT_THAT(*vocabulary->Encode("A b"), ElementsAre(1, 0, 2));
  EXPECT_THAT(
      Error(R"({"kind": "characters", "file": "v.txt", "space": " "})", 3),
      HasSubstr("space"));
}

TEST_F(VocabularyKindsTest, ReadsDoubleLineTokens) {
  Write("v.txt", "<S>\na\n");
  const auto vocabulary = Load(
      R"({"kind": "symbols", "file": "v.txt", "line_token": "<S>",
          "double_line_tokens": true})",
      2);
  EXPECT_THAT(*vocabulary->EncodeDocument("a"), ElementsAre(0, 1, 0));
  EXPECT_THAT(Error(R"({"kind": "symbols", "file": "v.txt",
                        "double_line_tokens": true})",
                    2),
              HasSubstr("double_line_tokens"));
}

TEST_F(VocabularyKindsTest, ReadsWikitext) {
  Write("v.txt", "<eos>\n<unk>\na\n@-@\n<x>\n");
  const auto vocabulary = Load(
      R"({"kind": "wikitext", "file": "v.txt", "unknown": "<unk>",
          "line_token": "<eos>", "special": ["<x>"], "lower_case": true})",
      5);
  EXPECT_EQ(vocabulary->kind(), "wikitext");
  EXPECT_THAT(*vocabulary->Encode("A-a <x>\n"), ElementsAre(2, 3, 2, 4, 0));
  for (const char* bad : {"5", "[5]", "[\"\"]", "[\"a b\"]"}) {
    EXPECT_THAT(Error(std::string(R"({"kind": "wikitext", "file": "v.txt",
                                      "special": )") +
                          bad + "}",
                      5),
                HasSubstr("special"))
        << bad;
  }
}

TEST_F(VocabularyKindsTest, ReadsASentencePieceModelWithRoomToSpare) {
  Write("m.model", DataFile("plain.model"));
  const std::string json = R"({"kind": "sentencepiece", "file": "m.model"})";
  EXPECT_EQ(Load(json, 416)->size(), 416);
  EXPECT_THAT(Error(json, 399), HasSubstr("m.model: has 400 pieces"));
  Write("m.model", "no model");
  EXPECT_THAT(Error(json, 416), HasSubstr("m.model: is not a SentencePiece"));
}

TEST_F(VocabularyKindsTest, EventsAreWordsEvenWithSpacesInTheirNames) {
  Write("e.json", R"(["Bar_None", "Note On", "Note%20On", "50%"])");
  const auto vocabulary = Load(R"({"kind": "events", "file": "e.json"})", 4);
  EXPECT_EQ(vocabulary->kind(), "events");
  EXPECT_EQ(*vocabulary->Decode({0, 1, 2, 3}),
            "Bar_None Note%20On Note%2520On 50%25");
  EXPECT_THAT(*vocabulary->Encode("50%25\nNote%20On  Note%2520On Bar_None"),
              ElementsAre(3, 1, 2, 0));
  EXPECT_FALSE(vocabulary->has_unknown());
  EXPECT_FALSE(vocabulary->Encode("Note On").ok());
  EXPECT_THAT(*vocabulary->Encode("Note On 50%25", {.skip_unknown = true}),
              ElementsAre(3));
}

TEST_F(VocabularyKindsTest, DigitsNeedNoFileAndAreTenAtMost) {
  EXPECT_THAT(*Load(R"({"kind": "digits"})", 10)->Encode("31"),
              ElementsAre(3, 1));
  EXPECT_THAT(Error(R"({"kind": "digits"})", 11), HasSubstr("digits"));
  EXPECT_THAT(Error(R"({"kind": "digits", "file": "x"})", 10),
              HasSubstr("file"));
}

TEST_F(VocabularyKindsTest, AnUnknownKindIsToldTheKnownOnes) {
  const std::string error = Error(R"({"kind": "bpe"})", 10);
  for (const char* kind : {"bytes", "decimal_bytes", "characters", "symbols",
                           "wikitext", "sentencepiece", "events", "digits"}) {
    EXPECT_THAT(error, HasSubstr(kind));
  }
}

// For every kind: what a stream says is what decoding the whole says, always
// valid UTF-8, and a clone made anywhere goes on in the same way.
TEST_F(VocabularyKindsTest, EveryKindStreamsWhatItDecodes) {
  Write("bytes.txt", "32\n226\n130\n172\n255\n101\n");
  Write("text8.txt", "_\na\nb\n");
  Write("words.txt", "<S>\nthe\n\u00E9t\u00E9\n@-@\n@,@\n\"\n.\n'\n5\n");
  Write("m.model", DataFile("unigram.model"));
  const struct {
    std::string json;
    int64_t size;
  } cases[] = {
      {R"({"kind": "decimal_bytes", "file": "bytes.txt"})", 6},
      {R"({"kind": "characters", "file": "text8.txt", "space": "_"})", 3},
      {R"({"kind": "symbols", "file": "words.txt", "line_token": "<S>",
           "double_line_tokens": true})",
       9},
      {R"({"kind": "wikitext", "file": "words.txt", "line_token": "<S>"})", 9},
      {R"({"kind": "sentencepiece", "file": "m.model"})", 608},
      {R"({"kind": "events", "file": "words.txt"})", 9},
      {R"({"kind": "digits"})", 10},
  };
  std::mt19937 random(9);
  for (const auto& c : cases) {
    const auto vocabulary = Load(c.json, c.size);
    ASSERT_NE(vocabulary, nullptr);
    for (int i = 0; i < 400; ++i) {
      std::vector<int32_t> ids(random() % 30);
      for (int32_t& id : ids) id = static_cast<int32_t>(random() % c.size);
      auto detokenizer = vocabulary->NewDetokenizer();
      std::string streamed;
      for (const int32_t id : ids) {
        if (random() % 4 == 0) detokenizer = detokenizer->Clone();
        const std::string piece = detokenizer->Add(id);
        ASSERT_TRUE(IsValidUtf8(piece)) << c.json;
        streamed += piece;
      }
      streamed += detokenizer->Flush();
      ASSERT_EQ(streamed, *vocabulary->Decode(ids)) << c.json;
    }
  }
}

}  // namespace

}  // namespace txl
