#include "tests/proto/api_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace txl {
namespace {

using ::testing::HasSubstr;

std::filesystem::path Repository() {
  const char* tests = std::getenv("TXL_TEST_DATA");
  return std::filesystem::path(tests == nullptr ? "tests" : tests) / "..";
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ApiReferenceTest : public ::testing::Test {
 protected:
  // The reference of one file with this content.
  absl::StatusOr<std::string> Make(const std::string& content) {
    // Named after the test: tests of one program run at the same time.
    const std::filesystem::path folder =
        std::filesystem::path(::testing::TempDir()) /
        (std::string("api_reference_") +
         ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "a.proto")
        << "syntax = \"proto3\";\npackage txl.v1;\n"
        << content;
    return MakeApiReference(folder, {"a.proto"});
  }
};

TEST_F(ApiReferenceTest, TheCommittedOneIsCurrent) {
  const auto text = MakeApiReference(Repository() / "proto", ApiFiles());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(*text == ReadFile(Repository() / "docs" / "api.md"))
      << "run: build/bin/txl-api-reference proto > docs/api.md";
}

TEST_F(ApiReferenceTest, EveryProtoFileIsInIt) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           Repository() / "proto" / "txl" / "v1")) {
    files += entry.path().extension() == ".proto" ? 1 : 0;
  }
  EXPECT_EQ(files, ApiFiles().size());
}

TEST_F(ApiReferenceTest, MessagesAreTablesOfTheirFields) {
  const auto text = Make(
      "// A thing\n// of two lines.\nmessage Thing {\n"
      "  // How many. < 5 | 6\n  optional int32 count = 1;\n"
      "  // Others.\n  repeated Thing more = 2;\n"
      "  // By name.\n  map<string, float> by_name = 3;\n"
      "  // Which.\n  oneof which {\n    // Text.\n    string text = 4;\n  }\n"
      "}\n");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("### Thing\n\nA thing of two lines.\n"));
  EXPECT_THAT(
      *text,
      HasSubstr("| `count` | optional int32 | How many. &lt; 5 \\| 6 |"));
  EXPECT_THAT(*text,
              HasSubstr("| `more` | repeated [Thing](#thing) | Others. |"));
  EXPECT_THAT(*text,
              HasSubstr("| `by_name` | map&lt;string, float&gt; | By name. |"));
  EXPECT_THAT(*text, HasSubstr("| `text` | one of which: string | Text. |"));
}

TEST_F(ApiReferenceTest, ParagraphsOfAFieldAreLinesOfItsCell) {
  const auto text = Make(
      "// A thing.\nmessage Thing {\n"
      "  // How many.\n  //\n  // Below < 5.\n  int32 count = 1;\n}\n");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text,
              HasSubstr("| `count` | int32 | How many.<br>Below &lt; 5. |"));
}

TEST_F(ApiReferenceTest, ServicesListTheirMethods) {
  const auto text = Make(
      "// In and out.\nmessage M {}\n"
      "// Serves.\nservice S {\n"
      "  // Streams.\n  //\n  // Errors: none.\n"
      "  rpc Go(M) returns (stream M);\n}\n");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("## S\n\nServes.\n"));
  EXPECT_THAT(*text, HasSubstr("**Go** ([M](#m)) → stream of [M](#m)\n\n"
                               "Streams.\n\nErrors: none.\n"));
}

TEST_F(ApiReferenceTest, EnumsListTheirValues) {
  const auto text = Make("// Which.\nenum E {\n  // None.\n  E_NONE = 0;\n}\n");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("| `E_NONE` | None. |"));
}

TEST_F(ApiReferenceTest, WhatHasNoCommentIsAnError) {
  const auto text = Make(
      "// A thing.\nmessage Thing {\n  int32 silent = 1;\n}\nenum E {\n"
      "  // None.\n  E_NONE = 0;\n}\n");
  EXPECT_EQ(text.status().message(),
            "no comment: txl.v1.Thing.silent, txl.v1.E");
}

TEST_F(ApiReferenceTest, AnErrorNamesFileAndLine) {
  const auto text = Make("message Thing {\n  int32 count 1;\n}\n");
  EXPECT_THAT(text.status().message(), HasSubstr("a.proto:4: "));
}

}  // namespace
}  // namespace txl
