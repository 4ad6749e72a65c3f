#include "model/convert/container/stored_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

// Elements 0, 1, 2, ... of type I32.
std::shared_ptr<const ByteSource> Counting(int64_t count) {
  std::string bytes(static_cast<size_t>(count) * 4, '\0');
  for (int32_t i = 0; i < count; ++i) std::memcpy(&bytes[i * 4], &i, 4);
  return BytesInMemory(std::move(bytes), "counting");
}

StoredTensor Matrix(int64_t rows, int64_t columns) {
  return *RowMajor(DType::kI32, {rows, columns}, Counting(rows * columns));
}

std::vector<int32_t> Read(const StoredTensor& t) {
  const absl::StatusOr<std::string> bytes = ReadTensor(t);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  std::vector<int32_t> values(bytes->size() / 4);
  if (!values.empty()) std::memcpy(values.data(), bytes->data(), bytes->size());
  return values;
}

// Element by element, from the definition of a strided view.
std::vector<int32_t> ByDefinition(const StoredTensor& t) {
  std::vector<int32_t> values;
  std::vector<int64_t> index(t.shape.size(), 0);
  for (int64_t n = t.numel(); n > 0; --n) {
    int64_t at = t.offset;
    for (size_t i = 0; i < index.size(); ++i) at += index[i] * t.strides[i];
    values.push_back(static_cast<int32_t>(at));
    for (size_t i = index.size(); i-- > 0 && ++index[i] == t.shape[i];) {
      index[i] = 0;
    }
  }
  return values;
}

std::string ErrorOf(std::vector<int64_t> shape, std::vector<int64_t> strides,
                    int64_t offset) {
  const auto tensor = Strided(DType::kI32, std::move(shape), std::move(strides),
                              offset, Counting(12));
  EXPECT_TRUE(tensor.ok() || absl::IsInvalidArgument(tensor.status()));
  return std::string(tensor.status().message());
}

TEST(StoredTensor, RowMajorReadsTheStorageAsItIs) {
  const StoredTensor t = Matrix(2, 3);
  EXPECT_EQ(t.numel(), 6);
  EXPECT_EQ(t.bytes(), 24);
  EXPECT_THAT(t.strides, ElementsAre(3, 1));
  EXPECT_THAT(Read(t), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(StoredTensor, RowMajorRefusesAShapeOfAnotherSize) {
  const auto status = [](std::vector<int64_t> shape) {
    return std::string(RowMajor(DType::kI32, std::move(shape), Counting(6))
                           .status()
                           .message());
  };
  EXPECT_EQ(status({6}), "");
  EXPECT_THAT(status({7}), HasSubstr("counting: has 24 bytes"));
  EXPECT_THAT(status({-6}), HasSubstr("negative size"));
  EXPECT_THAT(status({int64_t{1} << 32, int64_t{1} << 32, 6}),
              HasSubstr("more bytes than"));
  EXPECT_THAT(status({0, kMax, kMax}), HasSubstr("more bytes than"));
  EXPECT_THAT(status(std::vector<int64_t>(9, 1)), HasSubstr("8 dimensions"));
}

TEST(StoredTensor, ScalarAndEmptyTensorsRead) {
  EXPECT_THAT(Read(*RowMajor(DType::kI32, {}, Counting(1))), ElementsAre(0));
  EXPECT_THAT(Read(*RowMajor(DType::kI32, {0, 5}, Counting(0))), ElementsAre());
  EXPECT_THAT(
      Read(*Strided(DType::kI32, {3, 0}, {kMax, kMax}, 12, Counting(12))),
      ElementsAre());
}

TEST(StoredTensor, ColumnMajorMatrixReadsByRows) {
  const auto t = Strided(DType::kI32, {2, 3}, {1, 2}, 0, Counting(6));
  ASSERT_TRUE(t.ok());
  EXPECT_THAT(Read(*t), ElementsAre(0, 2, 4, 1, 3, 5));
}

TEST(StoredTensor, StridedRefusesWhatLeavesTheStorage) {
  EXPECT_EQ(ErrorOf({3, 4}, {4, 1}, 0), "");
  EXPECT_THAT(ErrorOf({3, 4}, {4, 1}, 1), HasSubstr("leaves its storage"));
  EXPECT_THAT(ErrorOf({3, 4}, {5, 1}, 0), HasSubstr("leaves its storage"));
  EXPECT_THAT(ErrorOf({2}, {kMax}, 5), HasSubstr("leaves its storage"));
  EXPECT_THAT(ErrorOf({3, 3}, {kMax, kMax}, 0), HasSubstr("leaves its"));
  EXPECT_THAT(ErrorOf({0}, {1}, 13), HasSubstr("leaves its storage"));
}

TEST(StoredTensor, ExpandedViewsAreReadUpToABound) {
  const StoredTensor twice =
      *Strided(DType::kI32, {2, 3}, {0, 1}, 4, Counting(12));
  EXPECT_THAT(Read(twice), ElementsAre(4, 5, 6, 4, 5, 6));
  const StoredTensor hostile =
      *Strided(DType::kI32, {1 << 20, 1 << 20}, {0, 0}, 0, Counting(12));
  const absl::Status status = ReadTensor(hostile).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), HasSubstr("repeats the storage's 48 bytes"));
}

TEST(StoredTensor, StridedRefusesNegativeNumbers) {
  EXPECT_THAT(ErrorOf({2}, {1}, -1), HasSubstr("negative offset"));
  EXPECT_THAT(ErrorOf({2}, {-1}, 4), HasSubstr("negative stride"));
  EXPECT_THAT(ErrorOf({-2}, {1}, 0), HasSubstr("negative size"));
  EXPECT_THAT(ErrorOf({2, 2}, {1}, 0), HasSubstr("strides"));
}

TEST(StoredTensor, StrideOfASingleElementMeansNothing) {
  EXPECT_EQ(ErrorOf({1, 2}, {kMax, 1}, 0), "");
  const StoredTensor t =
      *Strided(DType::kI32, {1, 2}, {kMax, 1}, 0, Counting(12));
  EXPECT_THAT(Read(Rows(t, 1, 1)), ElementsAre());
  EXPECT_THAT(Read(t), ElementsAre(0, 1));
}

TEST(StoredTensor, ViewsOfViewsShowTheRightElements) {
  const StoredTensor t = Matrix(3, 4);
  EXPECT_THAT(Read(Rows(t, 1, 3)), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(Read(Columns(t, 1, 3)), ElementsAre(1, 2, 5, 6, 9, 10));
  EXPECT_THAT(Read(Transposed(Rows(t, 0, 2))),
              ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  EXPECT_THAT(Read(FlippedRows(Columns(t, 0, 1))), ElementsAre(8, 4, 0));
  EXPECT_THAT(Read(At(t, 2)), ElementsAre(8, 9, 10, 11));
  EXPECT_THAT(Read(Rows(FlippedRows(t), 0, 1)), ElementsAre(8, 9, 10, 11));
}

TEST(StoredTensor, DimensionsOfOneAreDropped) {
  const StoredTensor ones = *RowMajor(DType::kI32, {2, 1, 3}, Counting(6));
  EXPECT_THAT(Squeezed(ones, 1).shape, ElementsAre(2, 3));
  EXPECT_THAT(Read(Squeezed(ones, 1)), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(StoredTensor, SameViewIsAboutElementsNotObjects) {
  const StoredTensor t = Matrix(3, 4);
  EXPECT_TRUE(SameView(t, t));
  EXPECT_TRUE(SameView(t, Transposed(Transposed(t))));
  EXPECT_TRUE(SameView(Rows(Matrix(1, 4), 0, 1), Matrix(1, 4)) == false);
  EXPECT_FALSE(SameView(Rows(t, 0, 1), Rows(t, 1, 2)));
  StoredTensor other_stride = Rows(t, 0, 1);
  other_stride.strides[0] = 77;
  EXPECT_TRUE(SameView(Rows(t, 0, 1), other_stride));
}

TEST(StoredTensor, EveryOrderOfDimensionsReadsByItsDefinition) {
  // Odd sizes, larger than one tile of the copy.
  const auto storage = Counting(3 * 37 * 41 + 100);
  const std::vector<std::vector<int64_t>> orders = {
      {37 * 41, 41, 1}, {37 * 41, 1, 37}, {41, 3 * 41, 1},
      {1, 3 * 41, 3},   {37, 1, 3 * 37},  {1, 3, 3 * 37}};
  for (const std::vector<int64_t>& strides : orders) {
    const StoredTensor t =
        *Strided(DType::kI32, {3, 37, 41}, strides, 100, storage);
    EXPECT_EQ(Read(t), ByDefinition(t));
    EXPECT_EQ(Read(FlippedRows(t)), ByDefinition(FlippedRows(t)));
    EXPECT_EQ(Read(At(t, 1)), ByDefinition(At(t, 1)));
  }
  const StoredTensor repeated =
      *Strided(DType::kI32, {5, 20}, {0, 2}, 1, storage);
  EXPECT_EQ(Read(repeated), ByDefinition(repeated));
}

TEST(StoredTensor, PiecesOfALargeViewJoinSeamlessly) {
  // 3 columns of 24 MiB each side by side: more than one piece.
  const int64_t rows = 6 << 20;
  const StoredTensor t =
      *Strided(DType::kI32, {rows, 3}, {1, rows}, 0, Counting(3 * rows));
  const std::vector<int32_t> values = Read(t);
  for (const int64_t row : {int64_t{0}, int64_t{12345}, rows - 1}) {
    for (int64_t column = 0; column < 3; ++column) {
      ASSERT_EQ(values[row * 3 + column], column * rows + row);
    }
  }
}

TEST(StoredTensor, ElementsOfEverySizeKeepTheirBytes) {
  std::string bytes(48, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
  for (const DType dtype :
       {DType::kU8, DType::kF16, DType::kF32, DType::kF64}) {
    const int64_t size = DTypeBytes(dtype);
    const int64_t columns = 48 / 3 / size;
    const StoredTensor t =
        *RowMajor(dtype, {3, columns}, BytesInMemory(bytes, "b"));
    const absl::StatusOr<std::string> turned = ReadTensor(Transposed(t));
    ASSERT_TRUE(turned.ok());
    // Element [1, 0] of the transposed matrix is [0, 1] of the stored one.
    EXPECT_EQ(turned->substr(3 * size, size), bytes.substr(size, size));
  }
}

TEST(StoredTensor, ErrorOfTheSourceComesThrough) {
  StoredTensor t = Matrix(2, 2);
  t.offset = 1;  // now one element beyond the storage
  EXPECT_THAT(ReadTensor(t).status().message(), HasSubstr("counting"));
  EXPECT_FALSE(ReadTensor(Transposed(t)).ok());
}

}  // namespace
}  // namespace txl
