#include "model/memory/image_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

namespace txl {
namespace {

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
              HasSubstr("3 numbers in 2 rows"));
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
