#include "model/train/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "model/config/generation_defaults.h"
#include "model/text/vocabulary_loader.h"

namespace txl {
namespace {

using testing::ElementsAre;

ModelConfig ConfigOf(const Corpus& corpus) {
  ModelConfig config;
  config.vocab_size = corpus.vocab_size();
  config.n_layer = config.n_head = 1;
  config.d_head = config.d_model = config.d_embed = config.d_inner = 4;
  config.mem_len = 3;
  config.tie_weight = true;
  config.tie_projs = {false};
  return config;
}

std::string Folder(const std::string& name) {
  return testing::TempDir() + "/model_files_test/" + name;
}

TEST(ModelFilesTest, AVocabularyOfCharactersReadsBackTheText) {
  const Corpus corpus =
      *MakeCorpus("né\n \"x\"", CorpusVocabulary::kCharacters, 0);
  const std::string folder = Folder("characters");
  ASSERT_TRUE(WriteModelFiles(folder, ConfigOf(corpus), corpus).ok());
  const auto vocabulary = LoadVocabulary(folder, corpus.vocab_size());
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_EQ((*vocabulary)->kind(), "characters");
  const auto ids = (*vocabulary)->Encode("né\n \"x\"");
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(std::vector<int64_t>(ids->begin(), ids->end()), corpus.train);
}

TEST(ModelFilesTest, BytesNeedNoVocabularyFile) {
  const Corpus corpus = *MakeCorpus("ab", CorpusVocabulary::kBytes, 0);
  const std::string folder = Folder("bytes");
  ASSERT_TRUE(WriteModelFiles(folder, ConfigOf(corpus), corpus).ok());
  const auto vocabulary = LoadVocabulary(folder, 256);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status();
  EXPECT_THAT(*(*vocabulary)->Encode("ab"), ElementsAre(97, 98));
}

TEST(ModelFilesTest, GenerationStartsAfterALineBreakWhereThereIsOne) {
  const Corpus with = *MakeCorpus("b\na", CorpusVocabulary::kCharacters, 0);
  const Corpus without = *MakeCorpus("ba", CorpusVocabulary::kCharacters, 0);
  for (const auto& [corpus, start] : {std::pair(with, std::vector<int32_t>{0}),
                                      {without, std::vector<int32_t>{}}}) {
    const std::string folder = Folder("start");
    ASSERT_TRUE(WriteModelFiles(folder, ConfigOf(corpus), corpus).ok());
    const auto text = ReadTextFile(folder + "/generation.json");
    ASSERT_TRUE(text.ok());
    const auto defaults =
        ParseGenerationDefaults(*text, "generation.json", corpus.vocab_size());
    ASSERT_TRUE(defaults.ok()) << defaults.status();
    EXPECT_EQ(defaults->start_tokens, start);
  }
}

TEST(ModelFilesTest, ACopyHasEverythingButWeightsAndTables) {
  const Corpus corpus = *MakeCorpus("b\na", CorpusVocabulary::kCharacters, 0);
  const std::string from = Folder("from"), to = Folder("to");
  std::filesystem::remove_all(to);
  ASSERT_TRUE(WriteModelFiles(from, ConfigOf(corpus), corpus).ok());
  for (const char* other :
       {"/model.safetensors", "/ngrams.bin", "/kinds.json"}) {
    ASSERT_TRUE(WriteTextFile(from + other, "x").ok());
  }
  ASSERT_TRUE(CopyModelFiles(from, to).ok());
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(to)) {
    names.insert(entry.path().filename());
    EXPECT_EQ(*ReadTextFile(entry.path()),
              *ReadTextFile(from + "/" + entry.path().filename().string()));
  }
  EXPECT_EQ(names, (std::set<std::string>{"config.json", "generation.json",
                                          "kinds.json", "tokenizer.json",
                                          "vocab.json"}));
}

TEST(ModelFilesTest, ACopyOfAModelOfIdsHasItsConfigurationAlone) {
  const std::string from = Folder("ids"), to = Folder("ids copy");
  std::filesystem::remove_all(to);
  std::filesystem::create_directories(from);
  ASSERT_TRUE(WriteTextFile(from + "/config.json", "{}").ok());
  ASSERT_TRUE(CopyModelFiles(from, to).ok());
  EXPECT_EQ(*ReadTextFile(to + "/config.json"), "{}");
  EXPECT_THAT(std::string(CopyModelFiles(from, "/proc/no/such").message()),
              testing::HasSubstr("/proc/no/such"));
}

TEST(ModelFilesTest, AFolderThatCannotBeMadeIsNamed) {
  const Corpus corpus = *MakeCorpus("ab", CorpusVocabulary::kBytes, 0);
  const auto status =
      WriteModelFiles("/proc/no/such", ConfigOf(corpus), corpus);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), testing::HasSubstr("/proc/no/such"));
}

}  // namespace
}  // namespace txl
