#include "model/cpu/format_names.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

TEST(FormatNames, AreFoundAgain) {
  for (const NamedFormat& named : kWeightFormats) {
    EXPECT_STREQ(FormatName(named.format), named.name);
    EXPECT_EQ(FindFormat(kWeightFormats, named.name), named.format);
  }
  for (const NamedForm& named : kForms) {
    EXPECT_STREQ(FormName(named.form), named.name);
    EXPECT_EQ(FindForm(named.name), named.form);
  }
}

TEST(FormatNames, OfRowsHaveNoScales) {
  EXPECT_EQ(FindFormat(kWeightFormats, "int8"), NumberFormat::kInt8);
  EXPECT_EQ(FindFormat(kRowFormats, "int8"), std::nullopt);
  EXPECT_EQ(JoinNames(kRowFormats), "f32, bf16, f16");
  EXPECT_EQ(JoinNames(kWeightFormats), "f32, bf16, f16, int8");
}

TEST(FormatNames, AreSpeltOneWay) {
  EXPECT_EQ(FindFormat(kWeightFormats, "F32"), std::nullopt);
  EXPECT_EQ(FindFormat(kWeightFormats, ""), std::nullopt);
  EXPECT_EQ(FindForm("auto"), std::nullopt);
}

}  // namespace
}  // namespace txl
