#include "model/convert/container/zip_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/model/convert/container/zip_writer.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

std::string ZipError(const RawZip& zip) {
  const auto directory = ReadZipDirectory(BytesInMemory(ZipBytes(zip), "z"));
  EXPECT_TRUE(directory.ok() || absl::IsInvalidArgument(directory.status()));
  return std::string(directory.status().message());
}

std::string ZipError(RawZipRecord record) {
  return ZipError(RawZip{
      .records = {{.name = "first", .data = "data"}, std::move(record)}});
}

// The content of a record, or the error of reading it.
std::string Content(const RawZip& zip, const std::string& name) {
  const auto directory = ReadZipDirectory(BytesInMemory(ZipBytes(zip), "z"));
  if (!directory.ok()) return std::string(directory.status().message());
  const auto source = directory->Open(name);
  const auto text = ReadText(*source, 0, source->size());
  return text.ok() ? *text : std::string(text.status().message());
}

TEST(ZipDirectory, StoredRecordsRead) {
  const RawZip zip = {.records = {{.name = "m/a", .data = "one"},
                                  {.name = "m/b", .data = ""},
                                  {.name = "m/c", .data = "three"}}};
  EXPECT_EQ(Content(zip, "m/a"), "one");
  EXPECT_EQ(Content(zip, "m/b"), "");
  EXPECT_EQ(Content(zip, "m/c"), "three");
}

TEST(ZipDirectory, Zip64NumbersReplaceTheShortOnes) {
  RawZip zip = {.records = {{.name = "a", .data = "one", .zip64 = true},
                            {.name = "b", .data = "two", .zip64 = true}}};
  EXPECT_EQ(Content(zip, "b"), "two");
  zip.zip64_end = true;
  EXPECT_EQ(Content(zip, "b"), "two");
}

TEST(ZipDirectory, CommentAtTheEndIsSkipped) {
  EXPECT_EQ(Content({.records = {{.name = "a", .data = "one"}},
                     .comment = "PK\5\6 looks like an end"},
                    "a"),
            "one");
}

TEST(ZipDirectory, SizesMayFollowTheDataOfARecord) {
  // Bit 3: the local header has zeros.
  EXPECT_EQ(Content({.records = {{.name = "a",
                                  .data = "one",
                                  .local_bytes = 0,
                                  .flags = 8}}},
                    "a"),
            "one");
  EXPECT_THAT(ZipError({.name = "a", .data = "one", .local_bytes = 0}),
              HasSubstr("contradicts"));
}

TEST(ZipDirectory, ChecksumIsVerifiedBeforeAnyByteIsGiven) {
  const RawZip zip = {.records = {{.name = "a", .data = "one", .crc32 = 77},
                                  {.name = "b", .data = "two"}}};
  EXPECT_EQ(Content(zip, "b"), "two");
  EXPECT_THAT(Content(zip, "a"),
              HasSubstr("record a of z: its checksum is wrong"));
  const auto directory = ReadZipDirectory(BytesInMemory(ZipBytes(zip), "z"));
  const auto source = directory->Open("a");
  uint8_t byte = 0;
  EXPECT_FALSE(source->Read(0, absl::MakeSpan(&byte, 1)).ok());
  EXPECT_FALSE(source->Read(1, absl::MakeSpan(&byte, 1)).ok());
  EXPECT_EQ(byte, 0);
}

TEST(ZipDirectory, ReadingBeyondARecordIsAnError) {
  const RawZip zip = {
      .records = {{.name = "a", .data = "one"}, {.name = "b", .data = "two"}}};
  const auto directory = ReadZipDirectory(BytesInMemory(ZipBytes(zip), "z"));
  ASSERT_TRUE(directory.ok());
  uint8_t bytes[4] = {};
  const absl::Status status =
      directory->Open("a")->Read(0, absl::MakeSpan(bytes));
  EXPECT_THAT(status.message(), HasSubstr("record a of z"));
}

TEST(ZipDirectory, UnsafeNamesAreRefused) {
  for (const std::string name :
       {"/etc/passwd", "../evil", "m/../../evil", "m/..", "m\\evil", "C:evil",
        "a\nb", "", "m/./a"}) {
    EXPECT_THAT(ZipError({.name = name, .data = "x"}), HasSubstr("unsafe name"))
        << name;
  }
}

TEST(ZipDirectory, CompressedAndEncryptedRecordsAreRefused) {
  EXPECT_THAT(ZipError({.name = "a", .data = "x", .method = 8}),
              HasSubstr("record a is compressed"));
  EXPECT_THAT(ZipError({.name = "a", .data = "x", .flags = 1}),
              HasSubstr("record a is encrypted"));
}

TEST(ZipDirectory, SizesBeyondTheArchiveAreRefused) {
  EXPECT_THAT(ZipError({.name = "a", .data = "x", .central_bytes = 1 << 30}),
              HasSubstr("record a declares 1073741824 bytes"));
  EXPECT_THAT(
      ZipError(
          {.name = "a", .data = "x", .central_bytes = 60, .local_bytes = 60}),
      HasSubstr("more than the archive has"));
  EXPECT_THAT(ZipError({.name = "a",
                        .data = "x",
                        .central_bytes = std::numeric_limits<int64_t>::max(),
                        .zip64 = true}),
              HasSubstr("record a declares"));
  EXPECT_THAT(ZipError({.name = "a", .data = "x", .local_offset = 70}),
              HasSubstr("record a"));
}

TEST(ZipDirectory, OverlapsAndDuplicatesAreRefused) {
  EXPECT_THAT(ZipError({.name = "first", .data = "x"}),
              HasSubstr("record first occurs twice"));
  // Two names of one record.
  RawZipRecord copy = {.name = "second", .data = "data", .local_offset = 0};
  EXPECT_THAT(ZipError(copy), HasSubstr("contradicts the zip directory"));
  // One record inside the data of another.
  RawZip inner = {.records = {{.name = "in", .data = "x"}}};
  const std::string hidden = ZipBytes(inner).substr(0, 33);
  RawZip outer = {.records = {{.name = "out", .data = hidden},
                              {.name = "in", .data = "x", .local_offset = 33}}};
  EXPECT_THAT(ZipError(outer), HasSubstr("records overlap at byte 33"));
}

TEST(ZipDirectory, HeaderMustAgreeWithTheDirectory) {
  EXPECT_THAT(ZipError({.name = "a", .data = "x", .local_name = "b"}),
              HasSubstr("contradicts"));
  EXPECT_THAT(ZipError({.name = "a", .data = "xyz", .local_bytes = 2}),
              HasSubstr("contradicts"));
}

TEST(ZipDirectory, BrokenEndsAreRefused) {
  RawZip zip = {.records = {{.name = "a", .data = "one"}}};
  const std::string bytes = ZipBytes(zip);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(
        ReadZipDirectory(BytesInMemory(bytes.substr(0, size), "cut")).ok())
        << size;
  }
  zip.disk = 1;
  EXPECT_THAT(ZipError(zip), HasSubstr("several parts"));
  zip.disk = 0;
  zip.entries = 0;
  EXPECT_THAT(ZipError(zip), HasSubstr("more than its entries"));
  zip.entries = 9;
  EXPECT_THAT(ZipError(zip), HasSubstr("directory is broken"));
  zip.zip64_end = true;
  EXPECT_THAT(ZipError(zip), HasSubstr("directory is broken"));
}

}  // namespace
}  // namespace txl
