// txl-model generate on the shipped model, with other generation defaults.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/model/golden_paths.h"
#include "tests/model/tool/program.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kGreedy[] = " --threads 1 --temperature 0";

class GenerateCommandTest : public testing::Test {
 protected:
  GenerateCommandTest()
      : model_(FreshTestFolder(
            testing::UnitTest::GetInstance()->current_test_info()->name())) {
    for (const auto& entry : std::filesystem::directory_iterator(
             TestData() + "/../models/shakespeare")) {
      std::filesystem::copy_file(
          entry.path(), model_ + "/" + entry.path().filename().string());
    }
  }

  void SetDefaults(const json& defaults) {
    json all = defaults;
    if (!all.contains("max_tokens")) all["max_tokens"] = 40;
    WriteTestFile(model_ + "/generation.json", all.dump());
  }

  ProgramResult Generate(const std::string& flags) {
    return RunTxlModel("generate " + model_ + kGreedy + flags);
  }

  // The text without the line break that closes it.
  std::string Text(const std::string& flags) {
    const ProgramResult result = Generate(flags);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_EQ(result.output.back(), '\n');
    return result.output.substr(0, result.output.size() - 1);
  }

  const std::string model_;
};

TEST_F(GenerateCommandTest, EndsBeforeAStopText) {
  SetDefaults({{"start_tokens", {0}}});
  const std::string whole = Text(" --prompt ROMEO:");
  ASSERT_EQ(whole.size(), 40u);
  const std::string stop = whole.substr(20, 4);
  SetDefaults({{"start_tokens", {0}}, {"stop_texts", {stop}}});
  EXPECT_EQ(Text(" --prompt ROMEO:"), whole.substr(0, whole.find(stop)));
}

TEST_F(GenerateCommandTest, NamesThePlaceOfTextThatIsNotUtf8) {
  SetDefaults({{"start_tokens", {0}}});
  WriteTestFile(model_ + "/latin1", "ROMEO:\nCaf\xE9");
  Generate(" --prompt - <" + model_ + "/latin1 2>" + model_ + "/said; true");
  EXPECT_THAT(ReadTestFile(model_ + "/said"),
              HasSubstr("standard input: line 2, byte 4: is not UTF-8"));
  EXPECT_THAT(Generate(" --prompt \"$(printf 'a\\351')\"").errors,
              HasSubstr("--prompt: line 1, byte 2: is not UTF-8"));
}

TEST_F(GenerateCommandTest, AnUnfinishedStopTextIsTextAfterAll) {
  SetDefaults({{"start_tokens", {0}}});
  const std::string whole = Text(" --prompt ROMEO:");
  SetDefaults({{"start_tokens", {0}},
               {"stop_texts", {whole.substr(36) + "but not this"}}});
  EXPECT_EQ(Text(" --prompt ROMEO:"), whole);
}

TEST_F(GenerateCommandTest, EndsAtAnEndTokenWithoutItsText) {
  SetDefaults({{"start_tokens", {0}}});
  const std::string whole = Text(" --prompt ROMEO:");
  // Ids are places in the list of symbols: a space is 1.
  ASSERT_EQ(json::parse(ReadTestFile(model_ + "/vocab.json"))[1], " ");
  SetDefaults({{"start_tokens", {0}}, {"end_tokens", {1}}});
  EXPECT_EQ(Text(" --prompt ROMEO:"), whole.substr(0, whole.find(' ')));
}

TEST_F(GenerateCommandTest, TheDirectorysLimitHoldsWithoutAFlag) {
  SetDefaults({{"start_tokens", {0}}, {"max_tokens", 7}});
  EXPECT_EQ(Text("").size(), 7u);
  EXPECT_EQ(Text(" --max-tokens 3").size(), 3u);
}

TEST_F(GenerateCommandTest, AnEmptyStandardInputIsNoPrompt) {
  EXPECT_EQ(Text(" --prompt -"), Text(""));
}

TEST_F(GenerateCommandTest, WithoutPromptAndStartTokensThereIsNoText) {
  SetDefaults(json::object());
  const ProgramResult result = Generate("");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("--prompt"));
  EXPECT_EQ(result.output, "");
}

TEST_F(GenerateCommandTest, APromptOutsideTheVocabularyIsRefused) {
  const ProgramResult result = Generate(" --prompt 1984");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, StartsWith("txl-model: "));
}

TEST_F(GenerateCommandTest, OfAPromptWhatTheVocabularyLacksCanBeSkipped) {
  SetDefaults({{"start_tokens", {0}}});
  EXPECT_EQ(Text(" --unknown skip --prompt RO1984MEO:"),
            Text(" --prompt ROMEO:"));
  const ProgramResult nothing = Generate(" --unknown skip --prompt 1984");
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_THAT(nothing.errors, HasSubstr("--prompt: holds no token"));
  const ProgramResult symbol = Generate(" --unknown unk --prompt ROMEO:");
  EXPECT_EQ(symbol.exit_code, 1);
  EXPECT_THAT(symbol.errors, HasSubstr("--unknown"));
  EXPECT_EQ(Generate(" --unknown drop --prompt ROMEO:").exit_code, 2);
}

TEST_F(GenerateCommandTest, WithoutATokenizerThereIsNoText) {
  std::filesystem::remove(model_ + "/tokenizer.json");
  const ProgramResult result = Generate(" --prompt ROMEO:");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.errors, HasSubstr("no tokenizer.json"));
}

TEST_F(GenerateCommandTest, LongPromptsAreFedInSegmentsWithoutATrace) {
  // A row of the top layer depends on 5 windows of 255 tokens before its own:
  // whatever lies farther back adds nothing.
  std::string prompt;
  while (prompt.size() < 1400) prompt += "to be or not to be ";
  const std::string quoted = " --prompt '" + prompt + "'";
  const std::string longer = " --prompt '" + prompt + prompt + "'";
  EXPECT_EQ(Text(quoted), Text(longer));
}

TEST_F(GenerateCommandTest, EverySamplingFlagIsCheckedByName) {
  for (const auto& [flag, name] :
       {std::pair{"--temperature -1", "temperature"},
        {"--top-k -1", "top_k"},
        {"--min-p 2", "min_p"},
        {"--typical-p 0", "typical_p"},
        {"--repetition-penalty 0", "repetition_penalty"},
        {"--presence-penalty 3", "presence_penalty"},
        {"--frequency-penalty -3", "frequency_penalty"}}) {
    const ProgramResult result = RunTxlModel("generate " + model_ + " " + flag);
    EXPECT_EQ(result.exit_code, 1) << flag;
    EXPECT_THAT(result.errors, HasSubstr(name));
  }
}

TEST_F(GenerateCommandTest, AFlagThatIsNotANumberIsWrongUsage) {
  for (const char* flag : {"--presence-penalty", "--frequency-penalty"}) {
    const ProgramResult result =
        RunTxlModel("generate " + model_ + " " + flag + " nan");
    EXPECT_EQ(result.exit_code, 2) << flag;
    EXPECT_THAT(result.errors, HasSubstr(flag));
  }
}

}  // namespace
}  // namespace txl
