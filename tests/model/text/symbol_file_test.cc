#include "model/text/symbol_file.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string ErrorOf(const std::string& content, const std::string& name) {
  const auto symbols = ParseSymbolFile(content, name);
  EXPECT_EQ(symbols.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(symbols.status().message());
}

TEST(SymbolFile, EachLineIsASymbol) {
  EXPECT_THAT(*ParseSymbolFile("the\nof\n<unk>\n", "vocab.txt"),
              ElementsAre("the", "of", "<unk>"));
}

TEST(SymbolFile, TheLastLineNeedsNoLineFeed) {
  EXPECT_THAT(*ParseSymbolFile("a\nb", "vocab.txt"), ElementsAre("a", "b"));
}

TEST(SymbolFile, SymbolsAreTakenAsTheyStand) {
  EXPECT_THAT(*ParseSymbolFile(" \n\t\n\r\n\u00E9\n", "vocab.txt"),
              ElementsAre(" ", "\t", "\r", "\u00E9"));
}

TEST(SymbolFile, AByteOrderMarkIsNoSymbol) {
  EXPECT_THAT(*ParseSymbolFile("\xEF\xBB\xBF<eos>\na\n", "vocab.txt"),
              ElementsAre("<eos>", "a"));
}

TEST(SymbolFile, OtherCodingsAreRefused) {
  using namespace std::string_literals;
  for (const std::string& content :
       {"\xFF\xFE" + "a\0\n\0"s, "\xFE\xFF" + "\0a\0\n"s, "a\0\n\0"s,
        "\xFF\xFE"s}) {
    EXPECT_THAT(ErrorOf(content, "vocab.txt"),
                StartsWith("vocab.txt: is not UTF-8 (UTF-16?)"));
  }
}

TEST(SymbolFile, NoContentIsNoSymbol) {
  EXPECT_THAT(*ParseSymbolFile("", "vocab.txt"), IsEmpty());
  EXPECT_THAT(*ParseSymbolFile("[]", "vocab.json"), IsEmpty());
}

TEST(SymbolFile, JsonNamesSymbolsThatALineCannotHold) {
  EXPECT_THAT(*ParseSymbolFile(R"(["\n", "a", "\u00e9"])", "chars.json"),
              ElementsAre("\n", "a", "\u00E9"));
}

TEST(SymbolFile, ADuplicateIsNamedWithBothLines) {
  const std::string error = ErrorOf("a\nb\nc\nb\n", "vocab.txt");
  EXPECT_THAT(error, StartsWith("vocab.txt: line 4: "));
  EXPECT_THAT(error, HasSubstr("line 2"));
  EXPECT_THAT(ErrorOf(R"(["x", "x"])", "v.json"),
              StartsWith("v.json: element 2: "));
}

TEST(SymbolFile, AnEmptySymbolIsNamedWithItsLine) {
  EXPECT_THAT(ErrorOf("a\n\nb\n", "vocab.txt"),
              StartsWith("vocab.txt: line 2: "));
  EXPECT_THAT(ErrorOf(R"([""])", "v.json"), StartsWith("v.json: element 1: "));
}

TEST(SymbolFile, IllFormedUtf8IsNamedWithItsLine) {
  EXPECT_THAT(ErrorOf("a\nb\n\xFF\n", "vocab.txt"),
              StartsWith("vocab.txt: line 3: "));
}

TEST(SymbolFile, AFileWithCarriageReturnsIsRefused) {
  EXPECT_THAT(ErrorOf("a\nthe\r\nof\r\n", "vocab.txt"),
              StartsWith("vocab.txt: line 2: "));
}

TEST(SymbolFile, JsonThatIsNoArrayOfStringsIsRefused) {
  EXPECT_THAT(ErrorOf(R"({"a": 1})", "v.json"), StartsWith("v.json: "));
  EXPECT_THAT(ErrorOf(R"(["a", )", "v.json"), StartsWith("v.json: "));
  EXPECT_THAT(ErrorOf(R"(["a", 1])", "v.json"),
              StartsWith("v.json: element 2: "));
}

}  // namespace
}  // namespace txl
