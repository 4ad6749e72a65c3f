#include "model/convert/container/bundle_slices.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

std::string Bytes(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes.push_back(static_cast<char>(value));
  return bytes;
}

// As in an index that TensorFlow 2.15 wrote for c[4,6], columns 2 to 6: the
// golden files of tensor_bundle_test.cc hold longer numbers.
TEST(SliceKey, IsWhatTensorFlowWrites) {
  EXPECT_EQ(SliceKey("c", {{0, -1}, {2, 4}}),
            Bytes({0, 'c', 0, 1, 1, 2, 0x80, 0x7f, 0x82, 0x84}));
}

// The examples that explain the code in its published description: 0x424242
// takes 4 bytes.
TEST(SliceKey, LongNumbersHaveAByteForEverySevenBits) {
  const std::string head = Bytes({0, 'c', 0, 1, 1, 1});
  EXPECT_EQ(SliceKey("c", {{0x424242, 63}}),
            head + Bytes({0xf0, 0x42, 0x42, 0x42, 0xbf}));
  EXPECT_EQ(SliceKey("c", {{64, 8191}}),
            head + Bytes({0xc0, 0x40, 0xdf, 0xff}));
  EXPECT_EQ(SliceKey("c", {{8192, 1}}), head + Bytes({0xe0, 0x20, 0x00, 0x81}));
  // 63 bits and the sign: nine leading ones.
  EXPECT_EQ(SliceKey("c", {{INT64_MAX, 0}}),
            head + Bytes({0xff, 0xc0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                          0xff, 0x80}));
}

TEST(SliceKey, EscapesTheBytesThatEndAName) {
  EXPECT_EQ(SliceKey(std::string("a\0b\xff", 4), {{0, -1}}),
            Bytes({0, 'a', 0, 0xff, 'b', 0xff, 0, 0, 1, 1, 1, 0x80, 0x7f}));
}

TEST(SliceKey, SortsByNameThenByStart) {
  int64_t last = 0;
  for (const int64_t start : {1, 63, 64, 127, 128, 8191, 8192, 1 << 20}) {
    EXPECT_LT(SliceKey("c", {{last, 1}}), SliceKey("c", {{start, 1}}));
    last = start;
  }
  EXPECT_LT(SliceKey("c", {{1 << 20, 1}}), SliceKey("ca", {{0, 1}}));
}

TEST(RowsOfSlice, AreThoseOfTheFirstDimension) {
  const auto rows = RowsOfSlice({{3, 4}, {0, -1}}, {7, 5});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->begin, 3);
  EXPECT_EQ(rows->end, 7);
  const auto spelt_out = RowsOfSlice({{0, -1}, {0, 5}}, {7, 5});
  ASSERT_TRUE(spelt_out.ok()) << spelt_out.status();
  EXPECT_EQ(spelt_out->begin, 0);
  EXPECT_EQ(spelt_out->end, 7);
}

TEST(RowsOfSlice, RefusesWhatIsNoRunOfRows) {
  EXPECT_THAT(RowsOfSlice({{0, -1}, {2, 3}}, {7, 5}).status().message(),
              HasSubstr("cut along dimension 1"));
  EXPECT_THAT(RowsOfSlice({{0, -1}}, {7, 5}).status().message(),
              HasSubstr("dimensions"));
  EXPECT_FALSE(RowsOfSlice({}, {}).ok());
  EXPECT_FALSE(RowsOfSlice({{-1, 2}}, {7}).ok());
  EXPECT_FALSE(RowsOfSlice({{8, 0}}, {7}).ok());
  EXPECT_FALSE(RowsOfSlice({{6, 2}}, {7}).ok());
  EXPECT_FALSE(RowsOfSlice({{1, INT64_MAX}}, {7}).ok());
}

}  // namespace
}  // namespace txl
