#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "client/bench/plan/workload.h"

namespace txl::bench {
namespace {

TEST(PromptLines, AreAPromptEachWithoutEmptyOnes) {
  const std::vector<Prompt> prompts =
      ParsePromptLines("ROMEO:\n\n  two words\r\nlast");
  ASSERT_EQ(prompts.size(), 3u);
  EXPECT_EQ(prompts[0].text, "ROMEO:");
  EXPECT_EQ(prompts[1].text, "  two words");
  EXPECT_EQ(prompts[2].text, "last");
}

TEST(PromptObjects, HoldTextOrTokens) {
  const auto prompts = ParsePromptObjects(
      "{\"text\": \"a\\nb\", \"source\": 1}\n\n{\"tokens\": [1, 2, 4000000000]}"
      "\n");
  ASSERT_TRUE(prompts.ok()) << prompts.status();
  ASSERT_EQ(prompts->size(), 2u);
  EXPECT_EQ((*prompts)[0].text, "a\nb");
  EXPECT_EQ((*prompts)[0].line, 1);
  EXPECT_EQ((*prompts)[1].line, 3);
  EXPECT_EQ((*prompts)[1].tokens,
            (std::vector<uint32_t>{1, 2, 4'000'000'000u}));
}

TEST(PromptObjects, NameTheLineThatIsNone) {
  for (const char* line :
       {"plain", "[]", "{}", "{\"text\": 5}", "{\"text\": \"\"}",
        "{\"tokens\": []}", "{\"tokens\": [-1]}", "{\"tokens\": [1.5]}",
        "{\"tokens\": [4294967296]}", "{\"text\": \"a\", \"tokens\": [1]}"}) {
    const absl::Status status =
        ParsePromptObjects(std::string("{\"text\": \"a\"}\n") + line).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_NE(std::string(status.message()).find("line 2"), std::string::npos);
  }
}

TEST(ReadPrompts, GoesByTheNameOfTheFile) {
  const std::string folder = ::testing::TempDir();
  const std::string lines = folder + "/prompts.txt";
  const std::string objects = folder + "/prompts.jsonl";
  const std::string empty = folder + "/empty.txt";
  std::ofstream(lines) << "{\"text\": \"x\"}\n";
  std::ofstream(objects) << "{\"text\": \"x\"}\n";
  std::ofstream(empty) << "\n\n";
  EXPECT_EQ(ReadPrompts(lines)->at(0).text, "{\"text\": \"x\"}");
  EXPECT_EQ(ReadPrompts(objects)->at(0).text, "x");
  EXPECT_NE(std::string(ReadPrompts(empty).status().message()).find(empty),
            std::string::npos);
  EXPECT_EQ(ReadPrompts(folder + "/none").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadPrompts("/etc").status().message(), "/etc: is a directory");
}

}  // namespace
}  // namespace txl::bench
