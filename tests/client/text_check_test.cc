#include "client/text_check.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "txl/v1/generation_service.pb.h"

namespace txl {
namespace {

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

TEST(ReadUserFile, TakesAllBytesAndNamesWhatItCannotRead) {
  const std::string path = ::testing::TempDir() + "/user-file";
  for (const size_t size : {0, 1, 1 << 20}) {
    const std::string bytes(size, '\xFF');
    std::ofstream(path, std::ios::binary) << bytes;
    EXPECT_EQ(*ReadUserFile(path), bytes);
  }
  EXPECT_EQ(Message(ReadUserFile("/no/such").status()),
            "/no/such: cannot be read");
  EXPECT_EQ(Message(ReadUserFile("/etc").status()), "/etc: is a directory");
  EXPECT_EQ(Message(ReadUserFile("/proc/self/mem").status()),
            "/proc/self/mem: cannot be read");
}

// Unicode 15, table 3-7.
TEST(FirstNonUtf8, IsWhereTheFirstIllFormedPartBegins) {
  for (const char* good :
       {"", "abc", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80",
        "\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBB\xBF", "\xF0\x90\x80\x80",
        "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(FirstNonUtf8(good), std::nullopt) << good;
  }
  for (const char* bad :
       {"a\x80", "a\xC0\x80", "a\xC1\xBF", "a\xE0\x9F\xBF", "a\xED\xA0\x80",
        "a\xF0\x8F\xBF\xBF", "a\xF4\x90\x80\x80", "a\xF5\x80\x80\x80", "a\xFF",
        "a\xC3", "a\xE2\x82", "a\xE2\x82z", "a\xF0\x9F\x98"}) {
    EXPECT_EQ(FirstNonUtf8(bad), 1u) << bad;
  }
}

TEST(CheckUtf8, NamesTheLineAndTheByte) {
  EXPECT_TRUE(CheckUtf8("F", "caf\xC3\xA9").ok());
  const absl::Status latin1 = CheckUtf8("F", "one\ncaf\xE9\n");
  EXPECT_EQ(latin1.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(latin1), "F is not UTF-8: line 2, byte 4 (0xE9)");
  EXPECT_EQ(Message(CheckUtf8("F", "\xFF\xFEh")),
            "F is not UTF-8: line 1, byte 1 (0xFF); it begins as UTF-16 does");
}

TEST(CheckTextFile, HasNoNul) {
  EXPECT_TRUE(CheckTextFile("F", "a\n").ok());
  EXPECT_EQ(Message(CheckTextFile("F", std::string("h\0i\0", 4))),
            "F is not UTF-8 text: line 1, byte 2 is a NUL, as in UTF-16 or in "
            "a file that is not text");
}

TEST(WithoutMark, LeavesOneOut) {
  EXPECT_EQ(WithoutMark("\xEF\xBB\xBFhi"), "hi");
  EXPECT_EQ(WithoutMark("\xEF\xBB\xBF\xEF\xBB\xBFhi"), "\xEF\xBB\xBFhi");
  EXPECT_EQ(WithoutMark("hi\xEF\xBB\xBF"), "hi\xEF\xBB\xBF");
}

TEST(CheckTexts, NamesTheFieldWhereverItIs) {
  v1::GenerateRequest request;
  request.set_text("caf\xC3\xA9");
  request.mutable_stop()->add_stop_texts("end");
  EXPECT_TRUE(CheckTexts(request).ok());
  request.mutable_stop()->add_stop_texts("\xE9");
  EXPECT_EQ(Message(CheckTexts(request)),
            "stop.stop_texts[1] is not UTF-8: line 1, byte 1 (0xE9)");
  v1::ScoreAlternativesRequest alternatives;
  alternatives.add_alternatives()->set_text("a\xE9");
  EXPECT_EQ(Message(CheckTexts(alternatives)),
            "alternatives[0].text is not UTF-8: line 1, byte 2 (0xE9)");
}

}  // namespace
}  // namespace txl
