#include <nlohmann/json.hpp>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/convert/vocabulary/vocabulary_files.h"
#include "tests/model/convert/vocabulary/vocabulary_directory.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using json = nlohmann::json;

class FindVocabularyTest : public testing::Test {
 protected:
  FindVocabularyTest() { checkpoint_.path = folder_.path("model.pt"); }

  absl::StatusOr<VocabularyFiles> Find(const std::string& family,
                                       int64_t vocab_size,
                                       const std::string& tokenizer = "") {
    return FindVocabulary({family, checkpoint_, tokenizer, vocab_size});
  }
  std::string ErrorOf(const std::string& family, int64_t vocab_size,
                      const std::string& tokenizer = "") {
    const auto found = Find(family, vocab_size, tokenizer);
    EXPECT_EQ(found.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(found.status().message());
  }

  TestFolder folder_;
  NativeCheckpoint checkpoint_;
};

std::string KindOf(const absl::StatusOr<VocabularyFiles>& found) {
  EXPECT_TRUE(found.ok()) << found.status();
  if (!found.ok() || found->files.empty()) return "none";
  return json::parse(found->files.at("tokenizer.json"))["kind"];
}

TEST_F(FindVocabularyTest, NoneThereIsNoError) {
  const auto found = Find("kimiyoung", 10);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->files.empty());
  EXPECT_EQ(found->source, "");
}

TEST_F(FindVocabularyTest, ALineFileBesideTheCheckpointIsFound) {
  folder_.Write("vocab.txt", "<eos> 10\nthe 9\nof 8\n");
  const auto found = Find("kimiyoung", 3);
  EXPECT_EQ(KindOf(found), "symbols");
  EXPECT_EQ(found->source, folder_.path("vocab.txt"));
  EXPECT_EQ(found->files.at("vocab.txt"), "<eos>\nthe\nof\n");
}

TEST_F(FindVocabularyTest, AFolderIsItsOwnPlace) {
  folder_.Write("vocab.txt", "32\n33\n");
  checkpoint_.path = folder_.path();
  EXPECT_EQ(KindOf(Find("kimiyoung", 2)), "decimal_bytes");
}

TEST_F(FindVocabularyTest, TheCheckpointsOwnVocabGoesBeforeFiles) {
  folder_.Write("vocab.txt", "a1\nb1\n");
  checkpoint_.data = {{"vocab", {{"idx2sym", {"c1", "d1"}}}}};
  const auto found = Find("nvidia", 2);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->files.at("vocab.txt"), "c1\nd1\n");
  EXPECT_THAT(found->source, HasSubstr("model.pt: vocab"));
}

TEST_F(FindVocabularyTest, AFileThatIsAskedForGoesBeforeAll) {
  folder_.Write("other.txt", "x1\ny1\n");
  checkpoint_.data = {{"vocab", {{"idx2sym", {"c1", "d1"}}}}};
  const auto found = Find("nvidia", 2, folder_.path("other.txt"));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->files.at("vocab.txt"), "x1\ny1\n");
}

TEST_F(FindVocabularyTest, NoVocabularyCanBeAskedFor) {
  folder_.Write("vocab.txt", "a1\nb1\n");
  const auto found = Find("nvidia", 3, "none");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->files.empty());
}

TEST_F(FindVocabularyTest, JsonHoldsADictionaryOrAList) {
  folder_.Write("vocab.json", R"({"b1": 1, "a1": 0})");
  EXPECT_EQ(Find("labml", 2)->files.at("vocab.txt"), "a1\nb1\n");
  folder_.Write("vocab.json", R"(["\n", "a"])");
  EXPECT_EQ(KindOf(Find("labml", 2)), "characters");
}

TEST_F(FindVocabularyTest, TheSortersDigitsNeedNoFile) {
  EXPECT_EQ(KindOf(Find("sorter", 10)), "digits");
  EXPECT_EQ(KindOf(Find("sorter", 11)), "none");
}

TEST_F(FindVocabularyTest, ASentencePieceModelIsFoundUnderAnyName) {
  std::filesystem::copy_file(TestData() + "/model/text/data/bpe.model",
                             folder_.path("chinese.model"));
  folder_.Write("other.model", "weights");
  const auto found = Find("thu", 512);
  EXPECT_EQ(KindOf(found), "sentencepiece");
  EXPECT_EQ(found->source, folder_.path("chinese.model"));
  const auto vocabulary = Loaded(found->files, 512);
  EXPECT_EQ(*vocabulary->Decode(*vocabulary->Encode("the king")), "the king");
  EXPECT_THAT(ErrorOf("thu", 100), HasSubstr("500 pieces"));
}

TEST_F(FindVocabularyTest, AFileOfOursIsTakenWithWhatBelongsToIt) {
  folder_.Write("tokenizer.json",
                R"({"kind": "symbols", "file": "words.txt"})");
  folder_.Write("words.txt", "a1\nb1\n");
  folder_.Write("generation.json", R"({"start_tokens": [1]})");
  folder_.Write("vocab.txt", "c1\nd1\n");
  const auto found = Find("kimiyoung", 2);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->files.size(), 3u);
  EXPECT_EQ(found->files.at("words.txt"), "a1\nb1\n");
  EXPECT_EQ(found->files.at("generation.json"), R"({"start_tokens": [1]})");
}

TEST_F(FindVocabularyTest, KindsOfAFileOfOursStayAndMusicWithoutThemGetsThem) {
  folder_.Write("tokenizer.json",
                R"({"kind": "events", "file": "events.txt"})");
  folder_.Write("events.txt", "Bar_None\nPosition_1/16\nNote On_60\nx_1\n");
  const auto made = Find("remi", 4);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->files.at("kinds.json"),
            "{\"kinds\": {\n"
            "  \"Bar\": {\"tokens\":[0],\"next\":[\"Bar\",\"Position\"]},\n"
            "  \"Position\": {\"tokens\":[1]},\n"
            "  \"Note On\": {\"tokens\":[2]}\n"
            "}}\n");
  folder_.Write("kinds.json", R"({"kinds": {}})");
  EXPECT_EQ(Find("remi", 4)->files.at("kinds.json"), R"({"kinds": {}})");
}

TEST_F(FindVocabularyTest, AForeignTokenizerJsonIsPassedOver) {
  folder_.Write("tokenizer.json", R"({"version": "1.0", "model": {}})");
  EXPECT_EQ(KindOf(Find("huggingface", 2)), "none");
  folder_.Write("vocab.txt", "c1\nd1\n");
  EXPECT_EQ(KindOf(Find("huggingface", 2)), "symbols");
}

TEST_F(FindVocabularyTest, AnotherSizeIsAnErrorThatNamesTheFile) {
  folder_.Write("vocab.txt", "a1\nb1\n");
  const std::string error = ErrorOf("kimiyoung", 3);
  EXPECT_THAT(error, HasSubstr(folder_.path("vocab.txt")));
  EXPECT_THAT(error, HasSubstr("2 symbols"));
}

TEST_F(FindVocabularyTest, DamagedFilesAreNamed) {
  folder_.Write("vocab.json", "{");
  EXPECT_THAT(ErrorOf("kimiyoung", 3), HasSubstr("vocab.json: is not JSON"));
  folder_.Write("vocab.pkl", "no pickle");
  EXPECT_THAT(ErrorOf("kimiyoung", 3), HasSubstr("vocab.pkl"));
  folder_.Write("bad.model", "no model");
  EXPECT_THAT(ErrorOf("thu", 3, folder_.path("bad.model")),
              HasSubstr("bad.model"));
  std::filesystem::create_directory(folder_.path("empty"));
  EXPECT_THAT(ErrorOf("thu", 3, folder_.path("empty")),
              HasSubstr("no file of a vocabulary"));
}

TEST_F(FindVocabularyTest, TextInAnotherCodingIsRefused) {
  using namespace std::string_literals;
  folder_.Write("vocab.txt", "\xFF\xFE" + "a\0\n\0b\0\n\0"s);
  EXPECT_THAT(ErrorOf("kimiyoung", 2),
              HasSubstr("vocab.txt: is not UTF-8 (UTF-16?)"));
  folder_.Write("vocab.txt", "a1\nb\xE9\n");
  EXPECT_THAT(ErrorOf("kimiyoung", 2),
              HasSubstr("vocab.txt: line 2, byte 2: is not UTF-8"));
  folder_.Write("vocab.txt",
                "\xEF\xBB\xBF"
                "a1\r\nb1\r\n");
  EXPECT_EQ(Find("kimiyoung", 2)->files.at("vocab.txt"), "a1\nb1\n");
}

TEST_F(FindVocabularyTest, AFileThatIsAskedForMustBeThere) {
  const auto found = Find("kimiyoung", 3, folder_.path("missing.txt"));
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("missing.txt"));
}

}  // namespace
}  // namespace txl
