#include "model/convert/container/byte_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace txl {
namespace {

using ::testing::HasSubstr;

std::string TextOrError(const ByteSource& source, uint64_t offset,
                        uint64_t bytes) {
  std::string text(bytes, '?');
  const absl::Status status = source.Read(
      offset, absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), bytes));
  return status.ok() ? text : std::string(status.message());
}

std::string WriteFile(const std::string& name, const std::string& bytes) {
  const std::string path = ::testing::TempDir() + "byte_source_" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(ByteSource, FileGivesAnyRangeOfItsBytes) {
  const std::string path = WriteFile("range", "0123456789");
  const auto file = OpenFile(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->size(), 10u);
  EXPECT_EQ((*file)->name(), path);
  EXPECT_EQ(TextOrError(**file, 3, 4), "3456");
  EXPECT_EQ(TextOrError(**file, 0, 10), "0123456789");
  EXPECT_EQ(TextOrError(**file, 10, 0), "");
}

TEST(ByteSource, ReadingBeyondTheEndNamesTheSource) {
  const auto memory = BytesInMemory("abc", "record x");
  EXPECT_THAT(TextOrError(*memory, 2, 2), HasSubstr("record x"));
  EXPECT_THAT(TextOrError(*memory, 4, 0), HasSubstr("exceed"));
  // offset + size wraps around to a small number.
  EXPECT_THAT(TextOrError(*memory, ~uint64_t{0}, 2), HasSubstr("exceed"));
  const std::string path = WriteFile("end", "0123456789");
  const auto file = OpenFile(path);
  EXPECT_THAT(TextOrError(**file, 9, 2), HasSubstr(path));
}

TEST(ByteSource, FileThatShrankWhileOpenIsDataLoss) {
  const std::string path = WriteFile("shrunk", "0123456789");
  const auto file = OpenFile(path);
  std::filesystem::resize_file(path, 4);
  uint8_t out[8] = {};
  EXPECT_TRUE(absl::IsDataLoss((*file)->Read(0, absl::MakeSpan(out))));
}

TEST(ByteSource, OnlyRegularFilesOpen) {
  const auto absent = OpenFile("/nowhere/model.pt");
  EXPECT_TRUE(absl::IsNotFound(absent.status()));
  EXPECT_THAT(absent.status().message(), HasSubstr("/nowhere/model.pt"));
  const auto folder = OpenFile(::testing::TempDir());
  EXPECT_TRUE(absl::IsInvalidArgument(folder.status()));
  EXPECT_THAT(folder.status().message(), HasSubstr("regular file"));
}

TEST(ByteSource, SliceOfASliceStaysInsideBoth) {
  const auto whole = BytesInMemory("0123456789", "whole");
  const auto slice = Slice(whole, 2, 6, "slice");
  ASSERT_TRUE(slice.ok());
  const auto inner = Slice(*slice, 1, 3, "inner");
  ASSERT_TRUE(inner.ok());
  EXPECT_EQ((*inner)->size(), 3u);
  EXPECT_EQ((*inner)->name(), "inner");
  EXPECT_EQ(TextOrError(**inner, 0, 3), "345");
  EXPECT_THAT(TextOrError(**inner, 0, 4), HasSubstr("inner"));
}

TEST(ByteSource, SliceThatExceedsTheWholeIsRefused) {
  const auto whole = BytesInMemory("0123456789", "whole");
  EXPECT_TRUE(Slice(whole, 10, 0, "empty").ok());
  for (const auto& [offset, bytes] :
       {std::pair<uint64_t, uint64_t>{8, 3}, {11, 0}, {~uint64_t{0}, 2}}) {
    const auto slice = Slice(whole, offset, bytes, "slice");
    EXPECT_TRUE(absl::IsInvalidArgument(slice.status()));
    EXPECT_THAT(slice.status().message(), HasSubstr("whole"));
  }
}

TEST(ByteSource, SliceKeepsItsWholeAlive) {
  std::shared_ptr<const ByteSource> slice;
  {
    auto whole = BytesInMemory("0123456789", "whole");
    slice = *Slice(std::move(whole), 5, 2, "slice");
  }
  EXPECT_EQ(TextOrError(*slice, 0, 2), "56");
}

}  // namespace
}  // namespace txl
