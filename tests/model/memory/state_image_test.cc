#include "model/memory/state_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

StateIdentity Identity() {
  StateIdentity identity;
  identity.fingerprint = "0123abcd";
  identity.window = 5;
  identity.mem_len = 4;
  identity.d_model = 3;
  identity.n_layer = 2;
  identity.row_dtype = "f32";
  identity.kernel = "torch-cpu";
  return identity;
}

// Rows of positions 6..9, distinct bytes.
StateImage Image() {
  StateImage image;
  image.identity = Identity();
  image.position = 10;
  image.rows = 4;
  image.data.resize(2 * 4 * 3 * 4);
  for (size_t i = 0; i < image.data.size(); ++i) {
    image.data[i] = static_cast<uint8_t>(i + 1);
  }
  image.Seal();
  return image;
}

TEST(StateImage, ASealedImageIsAccepted) {
  EXPECT_TRUE(CheckStateImage(Image(), Identity()).ok());
  EXPECT_EQ(Image().Bytes(), 96);
}

TEST(StateImage, SealingTwiceGivesTheSameChecksum) {
  StateImage image = Image();
  const uint64_t first = image.checksum;
  image.Seal();
  EXPECT_EQ(image.checksum, first);
}

TEST(StateImage, AnEmptyMemoryIsAnImageToo) {
  StateImage image = Image();
  image.position = 0;
  image.rows = 0;
  image.data.clear();
  image.Seal();
  EXPECT_TRUE(CheckStateImage(image, Identity()).ok());
}

TEST(StateImage, AZeroStartHasRowsAtPositionZero) {
  StateIdentity identity = Identity();
  identity.zero_start = true;
  StateImage image = Image();
  image.identity.zero_start = true;
  image.position = 0;
  image.Seal();
  EXPECT_TRUE(CheckStateImage(image, identity).ok());
}

struct Change {
  const char* test_name;
  std::function<void(StateIdentity&)> apply;
  const char* named;
};

std::ostream& operator<<(std::ostream& out, const Change& change) {
  return out << change.test_name;
}

class OtherIdentity : public testing::TestWithParam<Change> {};

TEST_P(OtherIdentity, IsRefusedNamingTheField) {
  StateIdentity other = Identity();
  GetParam().apply(other);
  EXPECT_FALSE(other == Identity());
  const absl::Status status = CheckStateImage(Image(), other);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().named));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, OtherIdentity,
    testing::Values(
        Change{"Weights", [](auto& i) { i.fingerprint = "4567"; },
               "fingerprint"},
        Change{"Window", [](auto& i) { i.window = 4; }, "window"},
        Change{"Memory", [](auto& i) { i.mem_len = 5; }, "mem_len"},
        Change{"Width", [](auto& i) { i.d_model = 6; }, "d_model"},
        Change{"Layers", [](auto& i) { i.n_layer = 1; }, "n_layer"},
        Change{"Start", [](auto& i) { i.zero_start = true; }, "zero_start"},
        Change{"Type", [](auto& i) { i.row_dtype = "f64"; }, "row_dtype"},
        Change{"Kernel", [](auto& i) { i.kernel = "cpu-avx2"; }, "kernel"}),
    [](const auto& info) { return std::string(info.param.test_name); });

TEST(StateImage, AnotherFormatIsRefusedNamingIt) {
  StateImage image = Image();
  image.format_version = 2;
  image.Seal();
  const absl::Status status = CheckStateImage(image, Identity());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("format_version"));
}

TEST(StateImage, EveryFlippedBitOfTheRowsIsNoticed) {
  const StateImage image = Image();
  for (size_t bit = 0; bit < image.data.size() * 8; ++bit) {
    StateImage damaged = image;
    damaged.data[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    EXPECT_EQ(CheckStateImage(damaged, Identity()).code(),
              absl::StatusCode::kDataLoss)
        << "bit " << bit;
  }
}

TEST(StateImage, TwoFlippedBitsOfTheRowsAreNoticed) {
  StateImage image = Image();
  const auto flip = [&image](size_t bit) {
    image.data[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
  };
  const size_t bits = image.data.size() * 8;
  int missed = 0;
  for (size_t first = 0; first < bits; ++first) {
    flip(first);
    for (size_t second = 0; second < first; ++second) {
      flip(second);
      missed += CheckStateImage(image, Identity()).ok() ? 1 : 0;
      flip(second);
    }
    flip(first);
  }
  EXPECT_EQ(missed, 0);
}

TEST(StateImage, SwappedRowsAreNoticed) {
  StateImage image = Image();
  std::swap_ranges(image.data.begin(), image.data.begin() + 12,
                   image.data.begin() + 12);
  EXPECT_EQ(CheckStateImage(image, Identity()).code(),
            absl::StatusCode::kDataLoss);
}

TEST(StateImage, AChangedPositionIsNoticed) {
  StateImage image = Image();
  image.position = 11;
  EXPECT_EQ(CheckStateImage(image, Identity()).code(),
            absl::StatusCode::kDataLoss);
}

TEST(StateImage, AnImageThatWasNeverSealedIsRefused) {
  StateImage image = Image();
  image.checksum = 0;
  EXPECT_EQ(CheckStateImage(image, Identity()).code(),
            absl::StatusCode::kDataLoss);
}

// Sizes that no session can have, under a checksum that is right.
struct BadSize {
  const char* test_name;
  int64_t position;
  int64_t rows;
  size_t bytes;
};

std::ostream& operator<<(std::ostream& out, const BadSize& bad) {
  return out << bad.test_name;
}

class BadSizes : public testing::TestWithParam<BadSize> {};

TEST_P(BadSizes, AreRefusedAlsoWhenSealed) {
  StateImage image = Image();
  image.position = GetParam().position;
  image.rows = GetParam().rows;
  image.data.resize(GetParam().bytes);
  image.Seal();
  const absl::Status status = CheckStateImage(image, Identity());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("rows at position"));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadSizes,
    testing::Values(BadSize{"NegativePosition", -1, 0, 0},
                    BadSize{"NegativeRows", 10, -1, 0},
                    BadSize{"MoreRowsThanMemory", 10, 5, 120},
                    BadSize{"MoreRowsThanTokens", 2, 3, 72},
                    BadSize{"TooLittleData", 10, 4, 95},
                    BadSize{"TooMuchData", 10, 4, 97},
                    BadSize{"NoData", 10, 4, 0}),
    [](const auto& info) { return std::string(info.param.test_name); });

TEST(StateImage, TheSizeFollowsTheTypeOfTheRows) {
  for (const auto& [type, bytes] : {std::pair{"f64", 8 * 3},
                                    {"f32", 4 * 3},
                                    {"f16", 2 * 3},
                                    {"bf16", 2 * 3},
                                    {"int8", 3 + 4}}) {  // with its scale
    StateIdentity identity = Identity();
    identity.row_dtype = type;
    StateImage image = Image();
    image.identity.row_dtype = type;
    image.data.assign(2 * 4 * bytes, 7);
    image.Seal();
    EXPECT_TRUE(CheckStateImage(image, identity).ok()) << type;
  }
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename Stored>
StateImage ImageOf(const std::string& dtype, const std::vector<Stored>& rows) {
  StateImage image;
  image.identity.row_dtype = dtype;
  image.identity.n_layer = 1;
  image.identity.d_model = 1;
  image.rows = static_cast<int64_t>(rows.size());
  image.data.resize(rows.size() * sizeof(Stored));
  std::memcpy(image.data.data(), rows.data(), image.data.size());
  return image;
}

TEST(ImageRowsTest, FloatsAreThemselves) {
  EXPECT_THAT(*WidenRows(ImageOf<float>("f32", {1.5f, -0.1f})),
              ElementsAre(1.5f, -0.1f));
  EXPECT_THAT(*WidenRows(ImageOf<double>("f64", {0.5, -0.1})),
              ElementsAre(0.5f, -0.1f));
}

// From the tables of IEEE 754: one, minus two, the largest, the smallest normal
// one, the smallest, minus zero.
TEST(ImageRowsTest, HalvesKeepTheirValue) {
  const auto rows = WidenRows(ImageOf<uint16_t>(
      "f16", {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x8000}));
  EXPECT_THAT(*rows,
              ElementsAre(1.0f, -2.0f, 65504.0f, 0x1p-14f, 0x1p-24f, -0.0f));
  EXPECT_TRUE(std::signbit(rows->back()));
}

TEST(ImageRowsTest, WhatIsNoNumberStaysNone) {
  const auto half = WidenRows(ImageOf<uint16_t>("f16", {0x7c00, 0xfe00}));
  EXPECT_EQ((*half)[0], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan((*half)[1]));
  const auto brain = WidenRows(ImageOf<uint16_t>("bf16", {0xff80, 0x7fc0}));
  EXPECT_EQ((*brain)[0], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan((*brain)[1]));
}

TEST(ImageRowsTest, BrainFloatsAreUpperHalves) {
  EXPECT_THAT(*WidenRows(ImageOf<uint16_t>("bf16", {0x3f80, 0xc040, 0x0001})),
              ElementsAre(1.0f, -3.0f, 0x1p-133f));
}

TEST(ImageRowsTest, WholeNumbersAreMultipliedByTheirRowsScale) {
  StateImage image;
  image.identity.row_dtype = "int8";
  image.identity.n_layer = 1;
  image.identity.d_model = 3;
  image.rows = 2;
  for (const auto& [numbers, scale] :
       {std::pair(std::array<int8_t, 3>{127, -127, 1}, 0.5f),
        std::pair(std::array<int8_t, 3>{0, 2, -3}, 0.25f)}) {
    for (const int8_t number : numbers) {
      image.data.push_back(static_cast<uint8_t>(number));
    }
    image.data.resize(image.data.size() + sizeof(float));
    std::memcpy(&image.data[image.data.size() - sizeof(float)], &scale,
                sizeof(float));
  }
  EXPECT_THAT(*WidenRows(image),
              ElementsAre(63.5f, -63.5f, 0.5f, 0.0f, 0.5f, -0.75f));
}

TEST(ImageRowsTest, WhatCannotBeReadIsNamed) {
  EXPECT_THAT(
      std::string(
          WidenRows(ImageOf<uint8_t>("int4", {1, 2})).status().message()),
      HasSubstr("int4"));
  StateImage image = ImageOf<float>("f32", {1, 2, 3});
  image.rows = 2;
  EXPECT_THAT(std::string(WidenRows(image).status().message()),
              HasSubstr("12 bytes in 2 rows"));
}

TEST(ImageRowsTest, ALayerIsReadAlone) {
  StateImage image =
      ImageOf<uint16_t>("bf16", {0x3f80, 0x4000, 0x4040, 0x4080});
  image.identity.n_layer = 2;
  image.rows = 2;
  std::vector<float> numbers(2);
  ASSERT_TRUE(WidenLayer(image, 1, absl::MakeSpan(numbers)).ok());
  EXPECT_THAT(numbers, ElementsAre(3, 4));
  numbers.resize(3);
  EXPECT_EQ(WidenLayer(image, 1, absl::MakeSpan(numbers)).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ImageRowsTest, SomeRowsAreTakenFromEveryLayer) {
  StateImage image = ImageOf<float>("f32", {1, 2, 3, 4, 5, 6});
  image.identity.n_layer = 2;
  image.rows = 3;
  image.position = 7;
  const StateImage some = WithRows(image, {{0, 2}});
  EXPECT_EQ(some.rows, 2);
  EXPECT_EQ(some.position, 7);
  EXPECT_EQ(some.identity, image.identity);
  EXPECT_THAT(*WidenRows(some), ElementsAre(1, 3, 4, 6));
  const float five = 5;
  const absl::Span<const uint8_t> row = RowOf(image, 1, 1);
  ASSERT_EQ(row.size(), sizeof(five));
  EXPECT_EQ(std::memcmp(row.data(), &five, sizeof(five)), 0);
  image.rows = 0;
  image.data.clear();
  EXPECT_THAT(*WidenRows(WithRows(image, {})), ElementsAre());
}

}  // namespace

}  // namespace txl
