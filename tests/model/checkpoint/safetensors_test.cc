#include "model/checkpoint/safetensors.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/checkpoint/raw_safetensors.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::unique_ptr<SafetensorsReader> Open(const std::string& path) {
  auto reader = SafetensorsReader::Open(path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? *std::move(reader) : nullptr;
}

absl::Span<const uint8_t> Span(const std::string& bytes) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()),
                             bytes.size());
}

std::string Text(absl::Span<const uint8_t> bytes) {
  return std::string(bytes.begin(), bytes.end());
}

TEST(SafetensorsReader, ReadsAFileMadeByHand) {
  const std::string data = F32Bytes({1, 2, 3, 4, 5, 6}) + "\x07\x08";
  const std::string path = WriteTempFile(
      "a", RawSafetensors(Header({Entry("m", "F32", "[2,3]", 0, 24),
                                  Entry("bytes", "U8", "[2]", 24, 26),
                                  R"("__metadata__":{"format":"pt"})"}),
                          data));
  const auto reader = Open(path);
  EXPECT_EQ(reader->path(), path);
  ASSERT_EQ(reader->tensors().size(), 2u);
  const TensorInfo& matrix = reader->tensors().at("m");
  EXPECT_EQ(matrix.dtype, DType::kF32);
  EXPECT_THAT(matrix.shape, ElementsAre(2, 3));
  EXPECT_EQ(matrix.numel(), 6);
  EXPECT_EQ(Text(reader->Bytes(matrix)), data.substr(0, 24));
  EXPECT_THAT(reader->Bytes(reader->tensors().at("bytes")), ElementsAre(7, 8));
  EXPECT_THAT(reader->metadata(), ElementsAre(Pair("format", "pt")));
}

TEST(SafetensorsReader, TheOrderOfTheHeaderIsFree) {
  const auto reader = Open(WriteTempFile(
      "a", RawSafetensors(Header({Entry("late", "U8", "[1]", 2, 3),
                                  Entry("early", "U8", "[2]", 0, 2)}),
                          "abc")));
  EXPECT_EQ(Text(reader->Bytes(reader->tensors().at("late"))), "c");
  EXPECT_EQ(Text(reader->Bytes(reader->tensors().at("early"))), "ab");
}

TEST(SafetensorsReader, ScalarsAndEmptyTensorsAreTensors) {
  const auto reader = Open(WriteTempFile(
      "a", RawSafetensors(Header({Entry("scalar", "U8", "[]", 0, 1),
                                  Entry("none", "F32", "[0,4]", 1, 1)}),
                          "x")));
  EXPECT_EQ(reader->tensors().at("scalar").numel(), 1);
  EXPECT_EQ(reader->tensors().at("none").numel(), 0);
  EXPECT_THAT(reader->Bytes(reader->tensors().at("none")), IsEmpty());
}

TEST(SafetensorsReader, AFileMayHoldNoTensor) {
  EXPECT_THAT(Open(WriteTempFile("a", RawSafetensors("{}", "")))->tensors(),
              IsEmpty());
}

TEST(SafetensorsReader, HeadersArePaddedWithSpaces) {
  EXPECT_THAT(
      Open(WriteTempFile("a", RawSafetensors("{}      ", "")))->tensors(),
      IsEmpty());
}

TEST(SafetensorsReader, AMissingFileIsNotFound) {
  const absl::Status status =
      SafetensorsReader::Open(testing::TempDir() + "txl_no_such_file").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("txl_no_such_file"));
}

TEST(DTypes, HaveTheNamesAndSizesOfTheFormat) {
  EXPECT_EQ(DTypeName(DType::kF64), "F64");
  EXPECT_EQ(DTypeName(DType::kF32), "F32");
  EXPECT_EQ(DTypeName(DType::kF16), "F16");
  EXPECT_EQ(DTypeName(DType::kBF16), "BF16");
  EXPECT_EQ(DTypeName(DType::kI64), "I64");
  EXPECT_EQ(DTypeName(DType::kI32), "I32");
  EXPECT_EQ(DTypeName(DType::kU8), "U8");
  EXPECT_EQ(DTypeBytes(DType::kF64), 8);
  EXPECT_EQ(DTypeBytes(DType::kF32), 4);
  EXPECT_EQ(DTypeBytes(DType::kF16), 2);
  EXPECT_EQ(DTypeBytes(DType::kBF16), 2);
  EXPECT_EQ(DTypeBytes(DType::kI64), 8);
  EXPECT_EQ(DTypeBytes(DType::kI32), 4);
  EXPECT_EQ(DTypeBytes(DType::kU8), 1);
}

class WriterTest : public testing::Test {
 protected:
  const std::string folder_ = FreshTempFolder("out");
  const std::string path_ = folder_ + "/model.safetensors";
};

TEST_F(WriterTest, WhatItWritesTheReaderReads) {
  const std::string matrix = F32Bytes({1, -2, 3, 0.5});
  const std::string odd = "abc";
  ASSERT_TRUE(WriteSafetensors(path_,
                               {{"a.odd", {DType::kU8, {3}, Span(odd)}},
                                {"b.none", {DType::kF16, {0}, {}}},
                                {"c.w", {DType::kF32, {2, 2}, Span(matrix)}}},
                               {{"who", "\"we\"\n"}})
                  .ok());
  const auto reader = Open(path_);
  EXPECT_THAT(reader->metadata(), ElementsAre(Pair("who", "\"we\"\n")));
  ASSERT_EQ(reader->tensors().size(), 3u);
  EXPECT_EQ(Text(reader->Bytes(reader->tensors().at("a.odd"))), odd);
  EXPECT_EQ(Text(reader->Bytes(reader->tensors().at("c.w"))), matrix);
  EXPECT_THAT(reader->tensors().at("c.w").shape, ElementsAre(2, 2));
  EXPECT_THAT(reader->tensors().at("b.none").shape, ElementsAre(0));
}

// The format itself: 8 bytes of length, JSON, data that starts aligned.
TEST_F(WriterTest, TheBytesAreThoseOfTheFormat) {
  const std::string data = F32Bytes({7});
  ASSERT_TRUE(
      WriteSafetensors(path_, {{"w", {DType::kF32, {1}, Span(data)}}}, {})
          .ok());
  const std::string file = ReadWholeFile(path_);
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) {
    length = length * 256 + static_cast<uint8_t>(file[i]);
  }
  ASSERT_EQ(file.size(), 8 + length + 4);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(file[8], '{');
  EXPECT_EQ(file.substr(8 + length), data);
  EXPECT_THAT(file.substr(8, length), HasSubstr(R"("data_offsets":[0,4])"));
}

TEST_F(WriterTest, AnOlderFileIsReplacedAndNothingElseIsLeft) {
  const std::string old_data = "old";
  const std::string new_data = "newer";
  ASSERT_TRUE(
      WriteSafetensors(path_, {{"x", {DType::kU8, {3}, Span(old_data)}}}, {})
          .ok());
  ASSERT_TRUE(
      WriteSafetensors(path_, {{"x", {DType::kU8, {5}, Span(new_data)}}}, {})
          .ok());
  const auto reader = Open(path_);
  EXPECT_EQ(Text(reader->Bytes(reader->tensors().at("x"))), new_data);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    files.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(files, ElementsAre("model.safetensors"));
}

TEST_F(WriterTest, AReaderKeepsTheFileThatItOpened) {
  const std::string old_data = "old";
  const std::string new_data = "newer";
  ASSERT_TRUE(
      WriteSafetensors(path_, {{"x", {DType::kU8, {3}, Span(old_data)}}}, {})
          .ok());
  const auto reader = Open(path_);
  ASSERT_TRUE(
      WriteSafetensors(path_, {{"x", {DType::kU8, {5}, Span(new_data)}}}, {})
          .ok());
  EXPECT_EQ(Text(reader->Bytes(reader->tensors().at("x"))), old_data);
}

TEST_F(WriterTest, DataThatContradictsTheShapeIsRefused) {
  const std::string data = "abc";
  const absl::Status status =
      WriteSafetensors(path_, {{"x", {DType::kF32, {1}, Span(data)}}}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("tensor x"));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(WriterTest, TheNameOfTheMetadataIsReserved) {
  EXPECT_FALSE(
      WriteSafetensors(path_, {{"__metadata__", {DType::kU8, {0}, {}}}}, {})
          .ok());
}

TEST_F(WriterTest, AFolderThatIsMissingIsAnErrorNamingThePath) {
  const std::string path = folder_ + "/no/such/model.safetensors";
  const absl::Status status = WriteSafetensors(path, {}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(path));
}

TEST_F(WriterTest, ALinkStaysAndNoOtherFileIsReplaced) {
  std::filesystem::create_symlink("target", path_);
  std::ofstream(folder_ + "/target.tmp") << "the user's";
  ASSERT_TRUE(WriteSafetensors(path_, {}, {}).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_TRUE(SafetensorsReader::Open(folder_ + "/target").ok());
  EXPECT_EQ(std::filesystem::file_size(folder_ + "/target.tmp"), 10u);
}

TEST_F(WriterTest, AFailedWriteLeavesTheOldStateAndNoRemains) {
  // A folder cannot be replaced by a file.
  std::filesystem::create_directories(path_ + "/inside");
  EXPECT_FALSE(WriteSafetensors(path_, {}, {}).ok());
  EXPECT_TRUE(std::filesystem::is_directory(path_ + "/inside"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
}

}  // namespace
}  // namespace txl
