#include "server/speculation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "model/text/byte_vocabulary.h"
#include "model/text/digit_vocabulary.h"
#include "model/text/ngram_builder.h"
#include "server/base/log.h"
#include "tests/fakes/fake_step_runner.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

using ::testing::AllOf;
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
  EXPECT_THAT(std::string(SetUpWith("auto").message()),
              HasSubstr("ngrams.bin: belongs to another vocabulary"));
  std::ofstream(model_.path + "/ngrams.bin") << "no table";
  EXPECT_THAT(std::string(SetUpWith("auto").message()),
              HasSubstr("ngrams.bin: is no table of n-grams"));
}

TEST_F(SpeculationTest, TheLogSaysWhetherThereIsADraft) {
  ASSERT_TRUE(SetUpWith("auto").ok());
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("\"draft\":false")));
  options_.draft = std::make_shared<FakeStepRunner>();
  ASSERT_TRUE(SetUpWith("auto").ok());
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("\"draft\":true")));
  ASSERT_TRUE(SetUpWith("off").ok());
  EXPECT_EQ(options_.draft, nullptr);
}

std::string Shipped() { return TestData() + "/../models/shakespeare"; }

TEST_F(SpeculationTest, ADraftHasTheModelsVocabulary) {
  const auto model = OpenModelDirectory(Shipped());
  ASSERT_TRUE(model.ok()) << model.status();
  const auto none = OpenDraft("", "off", *model);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
  const auto draft = OpenDraft(Shipped(), "auto", *model);
  ASSERT_TRUE(draft.ok()) << draft.status();
  EXPECT_EQ((*draft)->fingerprint, model->fingerprint);
}

TEST_F(SpeculationTest, AnotherVocabularyIsRefusedWithBothFolders) {
  const auto model = OpenModelDirectory(Shipped());
  ASSERT_TRUE(model.ok()) << model.status();
  const auto refused = OpenDraft(Shipped(), "auto", model_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr(Shipped()), HasSubstr(model_.path)));
  // As many ids that mean something else.
  model_.config.vocab_size = model->config.vocab_size;
  EXPECT_FALSE(OpenDraft(Shipped(), "auto", model_).ok());
  EXPECT_FALSE(OpenDraft(model_.path, "auto", *model).ok());
}

TEST_F(SpeculationTest, ADraftThatWouldNeverBeAskedIsAnError) {
  EXPECT_THAT(
      std::string(OpenDraft(Shipped(), "off", model_).status().message()),
      HasSubstr("--draft: nothing is guessed with --speculate off"));
}

TEST_F(SpeculationTest, ADraftHasAsManySlotsAsTheModel) {
  auto model = OpenModelDirectory(Shipped());
  ASSERT_TRUE(model.ok()) << model.status();
  const std::optional<ModelDirectory> draft = *std::move(model);
  StepRunnerOptions options;
  options.slots = 100;
  info_.slots = 3;
  const auto runner = LoadDraft(draft, info_, options);
  ASSERT_TRUE(runner.ok()) << runner.status();
  EXPECT_EQ((*runner)->info().slots, 3);
  EXPECT_EQ((*runner)->info().device, "cpu");
  info_.verifies_guesses = false;
  EXPECT_EQ(*LoadDraft(draft, info_, options), nullptr);
  EXPECT_EQ(*LoadDraft(std::nullopt, info_, options), nullptr);
}

}  // namespace
}  // namespace txl
