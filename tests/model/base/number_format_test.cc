#include "model/base/number_format.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

TEST(NumberFormat, NamesAreFoundAgain) {
  for (const NamedFormat& named : kWeightFormats) {
    EXPECT_STREQ(FormatName(named.format), named.name);
    EXPECT_EQ(FindFormat(kWeightFormats, named.name), named.format);
  }
}

TEST(NumberFormat, OfWeightsAndOfRowsAreListedWidestFirst) {
  EXPECT_EQ(FindFormat(kWeightFormats, "int8"), NumberFormat::kInt8);
  EXPECT_EQ(FindFormat(kRowFormats, "int8"), NumberFormat::kInt8);
  EXPECT_EQ(JoinNames(kRowFormats), "f32, bf16, f16, int8");
  EXPECT_EQ(JoinNames(kWeightFormats), "f32, bf16, f16, int8, int4");
}

TEST(NumberFormat, FourBitsAreForWeightsAlone) {
  EXPECT_EQ(FindFormat(kWeightFormats, "int4"), NumberFormat::kInt4);
  EXPECT_EQ(FindFormat(kRowFormats, "int4"), std::nullopt);
}

TEST(NumberFormat, WholeNumbersAreTheIntsOfTheNames) {
  for (const NamedFormat& named : kWeightFormats) {
    EXPECT_EQ(AreWholeNumbers(named.format), named.name[0] == 'i')
        << named.name;
  }
}

TEST(Products, AreOfFloatsOrOfWholeNumbers) {
  EXPECT_EQ(FindProducts("float"), Products::kFloat);
  EXPECT_EQ(FindProducts("int8"), Products::kInteger);
  EXPECT_EQ(FindProducts("int16"), std::nullopt);
  for (const std::string& name : ProductNames()) {
    EXPECT_TRUE(FindProducts(name).has_value()) << name;
  }
}

TEST(NumberFormat, NamesAreSpeltOneWay) {
  EXPECT_EQ(FindFormat(kWeightFormats, "F32"), std::nullopt);
  EXPECT_EQ(FindFormat(kWeightFormats, ""), std::nullopt);
}

TEST(NumberFormat, TakesAsManyBytesAsItsNameSays) {
  EXPECT_EQ(NumberBytes(NumberFormat::kF32), 4);
  EXPECT_EQ(NumberBytes(NumberFormat::kBF16), 2);
  EXPECT_EQ(NumberBytes(NumberFormat::kF16), 2);
  EXPECT_EQ(NumberBytes(NumberFormat::kInt8), 1);
  EXPECT_EQ(NumberBits(NumberFormat::kInt8), 8);
  EXPECT_EQ(NumberBits(NumberFormat::kInt4), 4);
}

}  // namespace
}  // namespace txl
