#include "server/base/text_file.h"

#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TextFileTest, IsReadWhole) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / "text_file_test_whole";
  const std::string text = "a\n\nb" + std::string(100'000, 'c');
  std::ofstream(file) << text;
  EXPECT_EQ(ReadTextFile(file), text);
}

TEST(TextFileTest, OfTheKernelIsReadThoughItsSizeIsNothing) {
  EXPECT_THAT(ReadTextFile("/proc/self/status"), HasSubstr("Name:"));
}

TEST(TextFileTest, IsEmptyWhereThereIsNone) {
  EXPECT_THAT(ReadTextFile("/proc/self/no_such_file"), IsEmpty());
}

TEST(TextFileTest, IsEmptyWhereItIsAFolder) {
  EXPECT_THAT(ReadTextFile("/proc/self"), IsEmpty());
}

}  // namespace
}  // namespace txl
