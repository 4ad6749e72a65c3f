// txl-model ngrams on the shipped model's vocabulary.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "model/checkpoint/model_directory.h"
#include "model/text/ngram_table.h"
#include "tests/model/golden_paths.h"
#include "tests/model/tool/program.h"

namespace txl {
namespace {

using testing::HasSubstr;

std::string Shipped() { return TestData() + "/../models/shakespeare"; }

TEST(NgramsCommandTest, WritesATableThatTheModelsServerReads) {
  const std::string folder = FreshTestFolder("ngrams_command");
  std::string text;
  for (int i = 0; i < 5; ++i) text += "To be, or not to be.\n";
  WriteTestFile(folder + "/text.txt", text);
  const ProgramResult result =
      RunTxlModel("ngrams " + Shipped() + " --text " + folder +
                  "/text.txt --order 5 --out " + folder + "/ngrams.bin");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("n-grams of 105 tokens"));
  const auto model = OpenModelDirectory(Shipped());
  ASSERT_TRUE(model.ok());
  const auto table = NgramTable::Read(folder + "/ngrams.bin",
                                      VocabularyFingerprint(*model->vocabulary),
                                      model->config.vocab_size);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->order(), 5);
  const auto next = table->Next(*model->vocabulary->Encode("not t"));
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(model->vocabulary->TokenBytes(next->id), "o");
}

TEST(NgramsCommandTest, ATextWithoutNgramsReplacesNoTable) {
  const std::string folder = FreshTestFolder("ngrams_command_empty");
  WriteTestFile(folder + "/ngrams.bin", "before");
  for (const char* text : {"", "a"}) {
    WriteTestFile(folder + "/text.txt", text);
    const ProgramResult result =
        RunTxlModel("ngrams " + Shipped() + " --text " + folder +
                    "/text.txt --out " + folder + "/ngrams.bin");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.errors,
                HasSubstr("text.txt: holds nothing to train on"));
    EXPECT_EQ(ReadTestFile(folder + "/ngrams.bin"), "before");
  }
}

TEST(NgramsCommandTest, TheTableGoesThroughALink) {
  const std::string folder = FreshTestFolder("ngrams_command_link");
  WriteTestFile(folder + "/text.txt", "To be, or not to be.\n");
  WriteTestFile(folder + "/link.new", "the user's");
  std::filesystem::create_symlink("table", folder + "/link");
  ASSERT_EQ(RunTxlModel("ngrams " + Shipped() + " --text " + folder +
                        "/text.txt --out " + folder + "/link")
                .exit_code,
            0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder + "/link"));
  EXPECT_TRUE(std::filesystem::is_regular_file(folder + "/table"));
  EXPECT_EQ(ReadTestFile(folder + "/link.new"), "the user's");
}

TEST(NgramsCommandTest, ReplacesNothingThatItReads) {
  const std::string folder = FreshTestFolder("ngrams_command_inputs");
  std::filesystem::copy(Shipped(), folder + "/m");
  WriteTestFile(folder + "/text.txt", "To be, or not to be.\n");
  std::filesystem::create_symlink("text.txt", folder + "/link");
  const std::string ngrams =
      "ngrams " + folder + "/m --text " + folder + "/text.txt --out " + folder;
  for (const char* out : {"/text.txt", "/link", "/m/model.safetensors",
                          "/m/vocab.json", "/m/../m/config.json"}) {
    const std::string before = ReadTestFile(folder + out);
    const ProgramResult result = RunTxlModel(ngrams + out);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.errors, HasSubstr("--out: would replace "));
    EXPECT_EQ(ReadTestFile(folder + out), before);
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(RunTxlModel(ngrams + "/m/ngrams.bin").exit_code, 0);
  }
}

TEST(NgramsCommandTest, SaysWhatIsMissing) {
  const std::string folder = FreshTestFolder("ngrams_command_errors");
  WriteTestFile(folder + "/text.txt", "\xc3\xa9");
  EXPECT_EQ(RunTxlModel("ngrams " + Shipped()).exit_code, 2);
  const ProgramResult unknown =
      RunTxlModel("ngrams " + Shipped() + " --text " + folder +
                  "/text.txt --out " + folder + "/ngrams.bin");
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(folder + "/ngrams.bin"));
}

}  // namespace
}  // namespace txl
