#include "model/text/vocabulary_loader.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model directory with the files that the test writes.
class LoadVocabularyTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::path(testing::TempDir()) /
        absl::StrCat(
            "txl_vocabulary_",
            testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& name, const std::string& content) {
    std::ofstream(directory_ / name, std::ios::binary) << content;
  }

  absl::StatusOr<std::unique_ptr<Vocabulary>> Load(int64_t vocab_size) {
    return LoadVocabulary(directory_.string(), vocab_size);
  }

  // The message of the InvalidArgument that loading gives.
  std::string Error(const std::string& tokenizer_json, int64_t vocab_size) {
    Write("tokenizer.json", tokenizer_json);
    const auto vocabulary = Load(vocab_size);
    EXPECT_EQ(vocabulary.status().code(), absl::StatusCode::kInvalidArgument)
        << tokenizer_json;
    return std::string(vocabulary.status().message());
  }

  std::filesystem::path directory_;
};

TEST_F(LoadVocabularyTest, ReadsBytes) {
  Write("tokenizer.json", R"({"kind": "bytes"})");
  const auto vocabulary = Load(256);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ((*vocabulary)->kind(), "bytes");
  EXPECT_THAT(*(*vocabulary)->Encode("Hi"), ElementsAre('H', 'i'));
}

TEST_F(LoadVocabularyTest, ReadsCharactersFromLines) {
  Write("tokenizer.json", R"({"kind": "characters", "file": "vocab.txt"})");
  Write("vocab.txt", " \na\n\u00E9\n");
  const auto vocabulary = Load(3);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ((*vocabulary)->kind(), "characters");
  EXPECT_THAT(*(*vocabulary)->Encode("a \u00E9"), ElementsAre(1, 0, 2));
}

TEST_F(LoadVocabularyTest, ReadsCharactersFromJson) {
  Write("tokenizer.json", R"({"kind": "characters", "file": "chars.json"})");
  Write("chars.json", R"(["\n", "a"])");
  const auto vocabulary = Load(2);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_THAT(*(*vocabulary)->Encode("a\n"), ElementsAre(1, 0));
}

TEST_F(LoadVocabularyTest, ReadsSymbolsWithEveryRule) {
  Write("tokenizer.json", R"({"kind": "symbols", "file": "vocab.txt",
    "delimiter": " ", "lower_case": true, "unknown": "<unk>",
    "line_token": "<eos>"})");
  Write("vocab.txt", "<eos>\n<unk>\nword\n");
  const auto vocabulary = Load(3);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ((*vocabulary)->kind(), "symbols");
  EXPECT_THAT(*(*vocabulary)->Encode("WORD other\tword\n"),
              ElementsAre(2, 1, 0));
}

TEST_F(LoadVocabularyTest, SymbolsDefaultToWhitespaceAndNoSpecialSymbols) {
  Write("tokenizer.json", R"({"kind": "symbols", "file": "vocab.txt"})");
  Write("vocab.txt", "A\nb\n");
  const auto vocabulary = Load(2);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_THAT(*(*vocabulary)->Encode("A\t b\nA"), ElementsAre(0, 1, 0));
  EXPECT_FALSE((*vocabulary)->Encode("a").ok());
}

TEST_F(LoadVocabularyTest, SymbolsWithAnEmptyDelimiterAreCharacters) {
  Write("tokenizer.json",
        R"({"kind": "symbols", "file": "v.txt", "delimiter": "",
            "unknown": "?", "line_token": null})");
  Write("v.txt", "?\na\n");
  const auto vocabulary = Load(2);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_THAT(*(*vocabulary)->Encode("axa"), ElementsAre(1, 0, 1));
}

TEST_F(LoadVocabularyTest, AModelWithoutATokenizerIsNotFound) {
  EXPECT_EQ(Load(256).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(LoadVocabularyTest, AVocabularyOfAnotherSizeIsRefusedNamingTheFile) {
  EXPECT_THAT(Error(R"({"kind": "bytes"})", 255), HasSubstr("tokenizer.json"));
  Write("vocab.txt", "a\nb\n");
  EXPECT_THAT(Error(R"({"kind": "symbols", "file": "vocab.txt"})", 3),
              AllOf(HasSubstr("vocab.txt"), HasSubstr("2"), HasSubstr("3")));
}

TEST_F(LoadVocabularyTest, ADuplicateSymbolIsRefusedNamingFileAndLine) {
  Write("vocab.txt", "a\nb\na\n");
  EXPECT_THAT(Error(R"({"kind": "symbols", "file": "vocab.txt"})", 3),
              HasSubstr("vocab.txt: line 3"));
}

TEST_F(LoadVocabularyTest, ACharacterVocabularyHoldsSingleCharactersOnly) {
  Write("vocab.txt", "a\nbc\n");
  EXPECT_THAT(Error(R"({"kind": "characters", "file": "vocab.txt"})", 2),
              AllOf(HasSubstr("vocab.txt"), HasSubstr("2")));
}

TEST_F(LoadVocabularyTest, BadFieldsAreRefusedNamingTheField) {
  Write("vocab.txt", "a\nb\n");
  Write("empty.txt", "");
  const struct {
    std::string json;
    std::string field;
  } cases[] = {
      {R"({})", "kind"},
      {R"({"kind": "bpe"})", "kind"},
      {R"({"kind": 3})", "kind"},
      {R"({"kind": "bytes", "file": "vocab.txt"})", "file"},
      {R"({"kind": "symbols"})", "file"},
      {R"({"kind": "symbols", "file": 1})", "file"},
      {R"({"kind": "symbols", "file": ""})", "file"},
      {R"({"kind": "symbols", "file": ".."})", "file"},
      {R"({"kind": "symbols", "file": "../vocab.txt"})", "file"},
      {R"({"kind": "symbols", "file": "missing.txt"})", "missing.txt"},
      {R"({"kind": "symbols", "file": "empty.txt"})", "empty.txt"},
      {R"({"kind": "characters", "file": "vocab.txt", "unknown": "a"})",
       "unknown"},
      {R"({"kind": "symbols", "file": "vocab.txt", "delimiter": ","})",
       "delimiter"},
      {R"({"kind": "symbols", "file": "vocab.txt", "delimiter": false})",
       "delimiter"},
      {R"({"kind": "symbols", "file": "vocab.txt", "lower_case": "yes"})",
       "lower_case"},
      {R"({"kind": "symbols", "file": "vocab.txt", "unknown": "<unk>"})",
       "unknown"},
      {R"({"kind": "symbols", "file": "vocab.txt", "unknown": 0})", "unknown"},
      {R"({"kind": "symbols", "file": "vocab.txt", "line_token": "\n"})",
       "line_token"},
      {R"({"kind": "symbols", "file": "vocab.txt", "lowercase": true})",
       "lowercase"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Error(c.json, 2), HasSubstr(c.field)) << c.json;
  }
}

TEST_F(LoadVocabularyTest, ATokenizerFileThatIsNoJsonObjectIsRefused) {
  for (const std::string json : {"", "[]", "{", "{\"kind\": \"bytes\"} x"}) {
    EXPECT_THAT(Error(json, 256), HasSubstr("tokenizer.json")) << json;
  }
}

TEST_F(LoadVocabularyTest, AFolderInPlaceOfAFileIsRefused) {
  std::filesystem::create_directories(directory_ / "vocab.txt");
  EXPECT_THAT(Error(R"({"kind": "symbols", "file": "vocab.txt"})", 2),
              HasSubstr("vocab.txt"));
}

TEST_F(LoadVocabularyTest, APipeIsRefusedInsteadOfWaitedFor) {
  ASSERT_EQ(::mkfifo((directory_ / "vocab.txt").c_str(), 0600), 0);
  EXPECT_THAT(Error(R"({"kind": "symbols", "file": "vocab.txt"})", 2),
              AllOf(HasSubstr("vocab.txt"), HasSubstr("not a regular file")));
  std::filesystem::remove(directory_ / "tokenizer.json");
  ASSERT_EQ(::mkfifo((directory_ / "tokenizer.json").c_str(), 0600), 0);
  EXPECT_THAT(std::string(Load(2).status().message()),
              AllOf(HasSubstr("tokenizer.json: is not a regular file")));
}

TEST_F(LoadVocabularyTest, ALargerFileThanAnyVocabularyIsRefused) {
  Write("vocab.txt", "a\nb\n");
  std::filesystem::resize_file(directory_ / "vocab.txt", (64 << 20) + 1);
  EXPECT_THAT(Error(R"({"kind": "symbols", "file": "vocab.txt"})", 2),
              AllOf(HasSubstr("vocab.txt"), HasSubstr("67108864 bytes")));
  EXPECT_THAT(Error(std::string((1 << 20) + 1, ' '), 2),
              AllOf(HasSubstr("tokenizer.json"), HasSubstr("1048576 bytes")));
}

// For every kind: what a stream says is what decoding the whole says, always
// valid UTF-8, and a clone made anywhere goes on in the same way.
TEST_F(LoadVocabularyTest, EveryKindStreamsWhatItDecodes) {
  Write("chars.json", R"(["\n", " ", "a", "\u00e9", "\u20ac"])");
  Write("words.txt", "<eos>\nthe\n\u00E9t\u00E9\n.\n");
  const struct {
    std::string json;
    int64_t vocab_size;
  } cases[] = {
      {R"({"kind": "bytes"})", 256},
      {R"({"kind": "characters", "file": "chars.json"})", 5},
      {R"({"kind": "symbols", "file": "words.txt"})", 4},
      {R"({"kind": "symbols", "file": "words.txt", "line_token": "<eos>"})", 4},
  };
  std::mt19937 random(6);
  for (const auto& c : cases) {
    Write("tokenizer.json", c.json);
    const auto vocabulary = Load(c.vocab_size);
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
    for (int i = 0; i < 500; ++i) {
      std::vector<int32_t> ids(random() % 30);
      for (int32_t& id : ids) id = random() % c.vocab_size;
      auto detokenizer = (*vocabulary)->NewDetokenizer();
      std::string streamed;
      for (const int32_t id : ids) {
        if (random() % 4 == 0) detokenizer = detokenizer->Clone();
        const std::string piece = detokenizer->Add(id);
        ASSERT_TRUE(IsValidUtf8(piece)) << c.json;
        streamed += piece;
      }
      streamed += detokenizer->Flush();
      ASSERT_EQ(streamed, *(*vocabulary)->Decode(ids)) << c.json;
    }
  }
}

}  // namespace
}  // namespace txl
