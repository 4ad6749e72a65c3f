#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "model/text/byte_vocabulary.h"
#include "model/text/digit_vocabulary.h"
#include "model/text/ngram_table.h"
#include "server/base/log.h"
#include "server/start_up.h"

namespace txl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class SpeculationTest : public ::testing::Test {
 protected:
  SpeculationTest() {
    model_.path =
        ::testing::TempDir() + "/speculation_" +
        ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(model_.path);
    std::filesystem::create_directories(model_.path);
    model_.config.vocab_size = ByteVocabulary::kSize;
    model_.vocabulary = std::make_unique<ByteVocabulary>();
    info_.verifies_guesses = true;
  }

  void WriteTable(const Vocabulary& vocabulary) {
    const NgramTable table =
        BuildNgrams({1, 2, 1, 2, 1, 2}, VocabularyFingerprint(vocabulary), {});
    ASSERT_TRUE(table.Write(model_.path + "/ngrams.bin").ok());
  }

  absl::Status SetUpWith(const std::string& speculate) {
    return SetUpSpeculation(speculate, model_, info_, &options_);
  }

  ModelDirectory model_;
  RunnerInfo info_;
  SchedulerOptions options_;
  LogCapture log_;
};

TEST_F(SpeculationTest, ReadsTheModelsTable) {
  WriteTable(*model_.vocabulary);
  ASSERT_TRUE(SetUpWith("auto").ok());
  EXPECT_EQ(options_.speculate_tokens, SchedulerOptions().speculate_tokens);
  ASSERT_NE(options_.ngrams, nullptr);
  EXPECT_EQ(options_.ngrams->Next({1})->id, 2);
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("\"ngram_bytes\"")));
}

TEST_F(SpeculationTest, AModelWithoutATableGuessesFromItsSessions) {
  ASSERT_TRUE(SetUpWith("auto").ok());
  EXPECT_GT(options_.speculate_tokens, 0);
  EXPECT_EQ(options_.ngrams, nullptr);
}

TEST_F(SpeculationTest, OffIsOff) {
  WriteTable(*model_.vocabulary);
  ASSERT_TRUE(SetUpWith("off").ok());
  EXPECT_EQ(options_.speculate_tokens, 0);
  EXPECT_EQ(options_.ngrams, nullptr);
}

TEST_F(SpeculationTest, SaysThatItIsOffWhereBitsWouldChange) {
  info_.verifies_guesses = false;
  ASSERT_TRUE(SetUpWith("auto").ok());
  EXPECT_EQ(options_.speculate_tokens, 0);
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("\"speculation\"")));
}

TEST_F(SpeculationTest, AWrongTableIsRefusedByName) {
  WriteTable(DigitVocabulary(10));
  EXPECT_THAT(SetUpWith("auto").message(),
              HasSubstr("ngrams.bin: belongs to another vocabulary"));
  std::ofstream(model_.path + "/ngrams.bin") << "no table";
  EXPECT_THAT(SetUpWith("auto").message(),
              HasSubstr("ngrams.bin: is not a table of n-grams"));
}

}  // namespace
}  // namespace txl
