#include "program/flag_checks.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace txl {
namespace {

// What the check makes of a value, or its error.
std::string Apply(const CLI::Validator& check, std::string text) {
  const std::string error = check(text);
  return error.empty() ? text : error;
}

TEST(BetweenTest, IncludesItsBounds) {
  const CLI::Validator check = Between(0, 1);
  EXPECT_EQ(check.get_description(), "0..1");
  EXPECT_EQ(Apply(check, "0"), "0");
  EXPECT_EQ(Apply(check, "1"), "1");
  EXPECT_EQ(Apply(check, "1.01"), "1.01 is not in 0..1");
  EXPECT_EQ(Apply(check, "nan"), "'nan' is not a number");
  EXPECT_EQ(Apply(check, " 1"), "' 1' is not a number");
  EXPECT_EQ(Apply(check, "much"), "'much' is not a number");
}

TEST(BetweenTest, WritesLargeAndBrokenBoundsInFull) {
  EXPECT_EQ(Between(1, 10'000'000).get_description(), "1..10000000");
  EXPECT_EQ(Between(0.001, 0.5).get_description(), "0.001..0.5");
}

TEST(AtLeastTest, HasNoUpperBound) {
  EXPECT_EQ(AtLeast(0).get_description(), ">= 0");
  EXPECT_EQ(Apply(AtLeast(0), "1e300"), "1e300");
  EXPECT_EQ(Apply(AtLeast(0), "-1"), "-1 is not at least 0");
}

TEST(AboveTest, LeavesItsBoundOut) {
  EXPECT_EQ(Above(0).get_description(), "> 0");
  EXPECT_EQ(Apply(Above(0), "0.5"), "0.5");
  EXPECT_EQ(Apply(Above(0), "0"), "0 is not above 0");
}

TEST(WholeBetweenTest, ShowsTheBoundsThatAreNotTheTypes) {
  EXPECT_EQ(WholeBetween(1, 64, 999).get_description(), "1..64");
  EXPECT_EQ(WholeBetween(1, 999, 999).get_description(), ">= 1");
}

TEST(WholeBetweenTest, IncludesItsBoundsAndTakesNoFractions) {
  const CLI::Validator check = WholeBetween(1, 64, 999);
  EXPECT_EQ(Apply(check, "1"), "1");
  EXPECT_EQ(Apply(check, "64"), "64");
  EXPECT_EQ(Apply(check, "65"), "65 is not in 1..64");
  EXPECT_EQ(Apply(check, "-1"), "-1 is not in 1..64");
  EXPECT_EQ(Apply(check, "+8"), "8");
  EXPECT_EQ(Apply(check, "010"), "10");
  EXPECT_EQ(Apply(check, "6.4e1"), "64");
  EXPECT_EQ(Apply(check, "1e300"), "1e300 is not in 1..64");
  EXPECT_EQ(Apply(check, "1.5"), "'1.5' is not a whole number");
  EXPECT_EQ(Apply(check, " 5"), "' 5' is not a whole number");
  EXPECT_EQ(Apply(check, "0x10"), "'0x10' is not a whole number");
  EXPECT_EQ(Apply(check, ""), "'' is not a whole number");
  EXPECT_EQ(Apply(check, "99999999999999999999"),
            "99999999999999999999 is not in 1..64");
}

TEST(OneOfTest, SuggestsTheNearestName) {
  const CLI::Validator check = OneOf({"poisson", "constant"});
  EXPECT_EQ(check.get_description(), "poisson|constant");
  EXPECT_EQ(Apply(check, "constant"), "constant");
  EXPECT_EQ(Apply(check, "poison"),
            "'poison' is not one of poisson, constant; did you mean poisson?");
}

TEST(OneOfTest, TakesANameInAnyCase) {
  const CLI::Validator check = OneOf({"debug", "info"});
  EXPECT_EQ(Apply(check, "INFO"), "info");
  EXPECT_EQ(Apply(check, "Debug"), "debug");
  EXPECT_EQ(Apply(check, "INFOO"),
            "'INFOO' is not one of debug, info; did you mean info?");
}

enum class Norm { kPre = 3, kPost = 7 };

TEST(OneOfTest, GivesAnEnumerationItsValue) {
  CLI::App app;
  Norm norm = Norm::kPost;
  app.add_option("--norm", norm)
      ->transform(OneOf<Norm>({{"pre", Norm::kPre}, {"post", Norm::kPost}}));
  app.parse("--norm pre");
  EXPECT_EQ(norm, Norm::kPre);
  app.parse("--norm POST");
  EXPECT_EQ(norm, Norm::kPost);
  EXPECT_THROW(app.parse("--norm prae"), CLI::ValidationError);
}

TEST(FormatSizeTest, TakesTheLargestUnitThatDivides) {
  EXPECT_EQ(FormatSize(0), "0");
  EXPECT_EQ(FormatSize(1000), "1000");
  EXPECT_EQ(FormatSize(65536), "64KiB");
  EXPECT_EQ(FormatSize(int64_t{3} << 40), "3TiB");
  EXPECT_EQ(FormatSize((int64_t{1} << 30) + 1024), "1048577KiB");
}

TEST(SizeBetweenTest, TakesUnitsAndGivesBytes) {
  const CLI::Validator check = SizeBetween(1024, 1 << 20);
  EXPECT_EQ(check.get_description(), "SIZE, 1KiB..1MiB");
  EXPECT_EQ(Apply(check, "64KiB"), "65536");
  EXPECT_EQ(Apply(check, "4096"), "4096");
  EXPECT_EQ(Apply(check, "64 kib"), "65536");
  EXPECT_EQ(Apply(check, "64K"), "65536");
  EXPECT_EQ(Apply(check, "0.5MB"), "524288");
  EXPECT_EQ(Apply(check, "4.096e3"), "4096");
  EXPECT_EQ(Apply(check, "04096"), "4096");
  EXPECT_EQ(Apply(check, "010KiB"), "10240");
  EXPECT_EQ(Apply(check, "2MiB"), "2MiB is not in 1KiB..1MiB");
  EXPECT_EQ(Apply(check, "-5"), "-5 is not in 1KiB..1MiB");
  EXPECT_EQ(Apply(check, "1000"), "1000 is not in 1KiB..1MiB");
  for (const char* bad : {"", "many", "64Kelvin", "99999999999999TiB", "0x1000",
                          "inf", " 4096", "4096 ", "0.3KiB", "1e19"}) {
    EXPECT_EQ(Apply(check, bad),
              "'" + std::string(bad) + "' is not a size like 64KiB");
  }
}

// The numbers of `--n`, or what is wrong with it.
std::string Numbers(const std::string& list,
                    const CLI::Validator& each = Between(0, 100)) {
  CLI::App app;
  std::vector<uint32_t> numbers;
  AddNumbers(app, "--n", &numbers, "", each);
  try {
    app.parse(std::vector<std::string>{list, "--n"});
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return absl::StrJoin(numbers, " ");
}

TEST(AddNumbers, ReadsWhatStandsBetweenCommas) {
  EXPECT_EQ(Numbers("7"), "7");
  EXPECT_EQ(Numbers("1,2,3"), "1 2 3");
}

TEST(AddNumbers, ReadsEachAsASingleOne) {
  EXPECT_EQ(Numbers("08,+9,1e1"), "8 9 10");
}

TEST(AddNumbers, TellsWhichIsWrong) {
  const auto wrong = [](const std::string& list, const std::string& error) {
    EXPECT_EQ(Numbers(list), "--n: " + error) << list;
  };
  wrong("1,,3", "'' is not a whole number");
  wrong("1,2,", "'' is not a whole number");
  wrong("1,x", "'x' is not a whole number");
  wrong("1, 2", "' 2' is not a whole number");
  wrong("1.5,2", "'1.5' is not a whole number");
  wrong("1,-1", "-1 is negative");
}

TEST(AddNumbers, HoldsWhatTheTypeHolds) {
  EXPECT_EQ(Numbers("4294967295", AtLeast(0)), "4294967295");
  EXPECT_EQ(Numbers("4294967296", AtLeast(0)), "--n: 4294967296 is too large");
}

TEST(AddNumbers, ChecksEach) {
  EXPECT_EQ(Numbers("1,101,3"), "--n: 101 is not in 0..100");
}

TEST(AddNumbers, TakesNoNumberBeyond64BitsForTheLargest) {
  CLI::App app;
  std::vector<uint64_t> seeds;
  AddNumbers(app, "--seeds", &seeds, "");
  app.parse("--seeds 18446744073709551615");
  EXPECT_EQ(seeds, std::vector<uint64_t>{18446744073709551615u});
  EXPECT_THROW(app.parse("--seeds 18446744073709551616"), CLI::ValidationError);
}

TEST(In64Bits, IncludesItsBounds) {
  for (const char* good : {"-9223372036854775808", "9223372036854775807"}) {
    EXPECT_EQ(Apply(In64Bits(true), good), good);
  }
  for (const char* good : {"0", "18446744073709551615"}) {
    EXPECT_EQ(Apply(In64Bits(false), good), good);
  }
  EXPECT_EQ(Apply(In64Bits(true), "9223372036854775808"),
            "9223372036854775808 is not in "
            "-9223372036854775808..9223372036854775807");
  EXPECT_EQ(Apply(In64Bits(true), "-9223372036854775809"),
            "-9223372036854775809 is not in "
            "-9223372036854775808..9223372036854775807");
  EXPECT_EQ(Apply(In64Bits(false), "18446744073709551616"),
            "18446744073709551616 is not in 0..18446744073709551615");
}

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
