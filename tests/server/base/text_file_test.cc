#include "server/base/text_file.h"

#include <sys/stat.h>

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

TEST(FileVersionTest, IsTheSameUntilTheFileIsAnother) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / "file_version_test";
  std::ofstream(file) << "one";
  const std::string first = FileVersion(file);
  EXPECT_EQ(FileVersion(file), first);
  std::ofstream(file.string() + ".new") << "two";
  std::filesystem::rename(file.string() + ".new", file);
  const std::string renamed = FileVersion(file);
  EXPECT_NE(renamed, first);
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  const std::string closed = FileVersion(file);
  EXPECT_NE(closed, renamed);
  std::ofstream(file) << "longer";
  EXPECT_NE(FileVersion(file), closed);
  std::filesystem::remove(file);
  EXPECT_THAT(FileVersion(file), IsEmpty());
}

}  // namespace
}  // namespace txl
