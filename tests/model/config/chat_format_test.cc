#include "model/config/chat_format.h"

#include <nlohmann/json.hpp>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/config/generation_defaults.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<GenerationDefaults> ParseChat(const std::string& chat) {
  return ParseGenerationDefaults("{\"chat\": " + chat + "}", "generation.json",
                                 10);
}

constexpr char kWhole[] = R"({
  "system": {"before": "<s>", "after": "</s>"},
  "user": {"before": "Q: ", "after": "\n"},
  "assistant": {"before": "A: ", "after": "\n\n"},
  "answer": "A:", "stop_texts": ["\nQ:", "\n\n"]})";

TEST(ChatFormat, IsReadAsItIsWritten) {
  const auto defaults = ParseChat(kWhole);
  ASSERT_TRUE(defaults.ok()) << defaults.status();
  const ChatFormat& format = *defaults->chat;
  EXPECT_EQ(format.system->before, "<s>");
  EXPECT_EQ(format.system->after, "</s>");
  EXPECT_EQ(format.user.before, "Q: ");
  EXPECT_EQ(format.user.after, "\n");
  EXPECT_EQ(format.assistant.before, "A: ");
  EXPECT_EQ(format.assistant.after, "\n\n");
  EXPECT_EQ(format.answer, "A:");
  EXPECT_THAT(format.stop_texts, ElementsAre("\nQ:", "\n\n"));
  EXPECT_EQ(ChatFormatToJson(format), nlohmann::json::parse(kWhole));
}

TEST(ChatFormat, WhatIsLeftOutIsEmptyAndAnAnswerBeginsAsTheAssistantsMessages) {
  const auto defaults =
      ParseChat(R"({"user": {}, "assistant": {"before": "A: "}})");
  ASSERT_TRUE(defaults.ok()) << defaults.status();
  const ChatFormat& format = *defaults->chat;
  EXPECT_FALSE(format.system.has_value());
  EXPECT_EQ(format.user.before + format.user.after, "");
  EXPECT_EQ(format.answer, "A: ");
  EXPECT_THAT(format.stop_texts, IsEmpty());
}

TEST(ChatFormat, IsAbsentWhereNothingIsSaid) {
  EXPECT_FALSE(ParseChat("null")->chat.has_value());
}

TEST(ChatFormat, ErrorsNameFileAndField) {
  const std::pair<const char*, const char*> bad[] = {
      {"1", "field chat must be an object"},
      {"{}", "field chat.user is missing"},
      {R"({"user": {}})", "field chat.assistant is missing"},
      {R"({"user": [], "assistant": {}})", "field chat.user must be"},
      {R"({"user": {"befor": ""}, "assistant": {}})",
       "field chat.user.befor is unknown"},
      {R"({"user": {"after": 1}, "assistant": {}})",
       "field chat.user.after must be a string"},
      {R"({"user": {}, "assistant": {}, "stop_texts": [""]})",
       "field chat.stop_texts has an empty text"},
      {R"({"user": {}, "assistant": {}, "tool": {}})",
       "field chat.tool is unknown"}};
  for (const auto& [chat, what] : bad) {
    const auto defaults = ParseChat(chat);
    ASSERT_FALSE(defaults.ok()) << chat;
    EXPECT_THAT(std::string(defaults.status().message()),
                HasSubstr(std::string("generation.json: ") + what));
  }
}

}  // namespace
}  // namespace txl
