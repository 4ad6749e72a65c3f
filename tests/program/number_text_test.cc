#include "program/number_text.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

TEST(FiniteNumber, IsADecimalNumberAlone) {
  EXPECT_EQ(FiniteNumber("5"), 5);
  EXPECT_EQ(FiniteNumber("+5"), 5);
  EXPECT_EQ(FiniteNumber("-0.5"), -0.5);
  EXPECT_EQ(FiniteNumber("1e3"), 1000);
  for (const char* bad : {"", " 5", "5 ", "5\r", "0x10", "inf", "nan", "1e400",
                          "5s", "1,5", "--5", "+-5", "e5", "."}) {
    EXPECT_FALSE(FiniteNumber(bad).has_value()) << bad;
  }
}

TEST(WholeDigits, AreOfEveryWayToWriteAWholeNumber) {
  EXPECT_EQ(WholeDigits("0"), "0");
  EXPECT_EQ(WholeDigits("-0"), "0");
  EXPECT_EQ(WholeDigits("-0.0"), "0");
  EXPECT_EQ(WholeDigits("+5"), "5");
  EXPECT_EQ(WholeDigits("-5"), "-5");
  EXPECT_EQ(WholeDigits("010"), "10");  // not octal
  EXPECT_EQ(WholeDigits("5.0"), "5");
  EXPECT_EQ(WholeDigits("1e3"), "1000");
  EXPECT_EQ(WholeDigits("18446744073709551615"), "18446744073709551615");
  for (const char* bad : {"", "+", "1.5", " 5", "5 ", "0x10", "inf", "nan",
                          "1e400", "5k", "many"}) {
    EXPECT_FALSE(WholeDigits(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace txl
