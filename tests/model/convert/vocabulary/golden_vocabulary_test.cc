// The vocabularies of the golden checkpoints, in their native files.

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/convert/container/torch_checkpoint.h"
#include "model/convert/vocabulary/vocabulary_files.h"
#include "tests/model/convert/vocabulary/vocabulary_directory.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

using json = nlohmann::json;

std::string Native(const std::string& name, const std::string& file) {
  return GoldenDirectory(name) + "/native/" + file;
}

json Expected(const std::string& name, const std::string& file) {
  std::ifstream in(Native(name, file));
  return json::parse(in);
}

// Every id spells its symbol, and every symbol that is a word comes back.
void ExpectSymbols(const VocabularyFiles& found,
                   const std::vector<std::string>& symbols) {
  const auto size = static_cast<int64_t>(symbols.size());
  const auto vocabulary = Loaded(found.files, size);
  ASSERT_NE(vocabulary, nullptr);
  for (int32_t id = 0; id < size; ++id) {
    EXPECT_EQ(vocabulary->TokenBytes(id), symbols[id]);
  }
}

class GoldenHuggingFaceVocabulary : public testing::TestWithParam<const char*> {
};

// vocab.bin is a file of torch.save, vocab.pkl a plain pickle; both hold UTF-8
// that had been read as latin-1.
TEST_P(GoldenHuggingFaceVocabulary, IsRepairedAndKeepsItsIds) {
  const NativeCheckpoint checkpoint;
  const auto found = FindVocabulary(
      {"huggingface", checkpoint, Native("hf-adaptive", GetParam()), 211});
  ASSERT_TRUE(found.ok()) << found.status();
  const json expected = Expected("hf-adaptive", "vocab.expected.json");
  ExpectSymbols(*found, expected["idx2sym_repaired"]);
  const json tokenizer = json::parse(found->files.at("tokenizer.json"));
  EXPECT_EQ(tokenizer["kind"], "wikitext");
  EXPECT_EQ(tokenizer["lower_case"], expected["lower_case"]);
  EXPECT_EQ(tokenizer["line_token"],
            expected["idx2sym_repaired"][expected["eos_idx"].get<int>()]);
  EXPECT_EQ(tokenizer["unknown"],
            expected["idx2sym_repaired"][expected["unk_idx"].get<int>()]);
  EXPECT_THAT(found->source, testing::HasSubstr("4 symbols"));
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenHuggingFaceVocabulary,
                         testing::Values("vocab.bin", "vocab.pkl"),
                         [](const auto& info) {
                           return std::string(info.param).substr(6);
                         });

class GoldenNvidiaVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(GoldenNvidiaVocabulary, IsInsideTheCheckpoint) {
  const std::string name = GetParam();
  NativeCheckpoint checkpoint;
  checkpoint.path = Native(name, "checkpoint_best.pt");
  const auto data = ReadPickleData(checkpoint.path);
  ASSERT_TRUE(data.ok()) << data.status();
  checkpoint.data = *data;
  const json expected = Expected(name, "vocab.expected.json");
  const auto size = static_cast<int64_t>(expected["idx2sym"].size());
  const auto found = FindVocabulary({"nvidia", checkpoint, "", size});
  ASSERT_TRUE(found.ok()) << found.status();
  ExpectSymbols(*found, expected["idx2sym"]);
  const json tokenizer = json::parse(found->files.at("tokenizer.json"));
  EXPECT_EQ(tokenizer["kind"], "symbols");
  EXPECT_EQ(tokenizer["lower_case"], expected["lower_case"]);
  EXPECT_EQ(tokenizer.value("delimiter", json()), expected["delimiter"]);
  EXPECT_EQ(tokenizer["line_token"], "<eos>");
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenNvidiaVocabulary,
                         testing::Values("nvidia-2019", "nvidia-adaptive",
                                         "nvidia-div1"),
                         [](const auto& info) {
                           std::string name = info.param;
                           name[name.find('-')] = '_';
                           return name;
                         });

TEST(GoldenMusicVocabulary, LiesBesideTheCheckpoint) {
  NativeCheckpoint checkpoint;
  checkpoint.path = Native("cpw", "ep_170.pth.tar");
  const auto found = FindVocabulary({"compound-word", checkpoint, "", 157});
  ASSERT_TRUE(found.ok()) << found.status();
  const std::vector<std::string> events =
      Expected("cpw", "dictionary.expected.json");
  ExpectSymbols(*found, events);
  const auto vocabulary = Loaded(found->files, 157);
  EXPECT_EQ(vocabulary->kind(), "events");
  std::vector<int32_t> ids(157);
  for (int32_t id = 0; id < 157; ++id) ids[id] = 156 - id;
  EXPECT_EQ(*vocabulary->Encode(*vocabulary->Decode(ids)), ids);
  EXPECT_EQ(json::parse(found->files.at("generation.json"))["start_tokens"],
            json({0}));  // Bar_None
}

}  // namespace
}  // namespace txl
