#include "program/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/flag_checks.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class HelpTest : public ::testing::Test {
 protected:
  HelpTest() { app_.formatter(std::make_shared<HelpFormatter>(false)); }

  CLI::App app_{"Does things.", "thing"};
  double share_ = 0.5;
  std::string name_;
  bool on_ = false;
};

TEST_F(HelpTest, SaysWhatAValueMayBeAndWhatHoldsWithoutIt) {
  auto* option = app_.add_option("--share", share_, "how much")
                     ->check(Between(0, 1))
                     ->envname("THING_SHARE")
                     ->capture_default_str();
  const FlagFacts facts = FactsOf(*option);
  EXPECT_EQ(facts.names, "--share");
  EXPECT_EQ(facts.value, "0..1");
  EXPECT_EQ(facts.description, "how much [default: 0.5] [$THING_SHARE]");
  EXPECT_THAT(app_.help(),
              HasSubstr("  --share 0..1                how much [default: "
                        "0.5] [$THING_SHARE]\n"));
}

TEST_F(HelpTest, NamesWhatAFlagGoesWithAndNotWith) {
  CLI::Option* one = app_.add_flag("--one", on_, "first");
  CLI::Option* two = app_.add_flag("--two", on_, "second")->needs(one);
  EXPECT_EQ(FactsOf(*two).description, "second [with --one]");
  CLI::Option* three = app_.add_flag("--three", on_, "third")->excludes(two);
  EXPECT_EQ(FactsOf(*three).description, "third [not with --two]");
}

TEST_F(HelpTest, ListsChoicesAndFiles) {
  EXPECT_THAT(
      FactsOf(
          *app_.add_option("--kind", name_)->check(OneOf({"left", "right"})))
          .choices,
      ElementsAre("left", "right"));
  EXPECT_TRUE(
      FactsOf(*app_.add_option("--file", name_)->check(CLI::ExistingFile))
          .takes_file);
}

TEST_F(HelpTest, BreaksLongLinesAtEightyColumns) {
  std::string words;
  for (int i = 0; i < 30; ++i) words += "sixsix ";
  app_.add_option("--an-exceedingly-long-name-of-a-flag", name_, words);
  app_.add_option("--short", name_, words);
  const std::string help = app_.help();
  size_t longest = 0;
  for (size_t begin = 0; begin < help.size();) {
    const size_t end = help.find('\n', begin);
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  EXPECT_LE(longest, 80u);
  EXPECT_GT(longest, 70u);
  EXPECT_THAT(help, HasSubstr("flag TEXT\n" + std::string(30, ' ') + "sixsix"));
}

TEST_F(HelpTest, HidesTheGroupWithoutAName) {
  app_.add_flag("--secret", on_, "hidden")->group("");
  app_.add_flag("--open", on_, "shown")->group("Others");
  EXPECT_THAT(app_.help(), HasSubstr("\nOthers:\n  --open "));
  EXPECT_THAT(app_.help(), Not(HasSubstr("--secret")));
}

TEST_F(HelpTest, ListsCommandsWithoutCli11sRemarks) {
  app_.add_subcommand("go", "Goes");
  app_.require_subcommand(1);
  EXPECT_THAT(app_.help(), HasSubstr("  go                          Goes\n"));
  EXPECT_THAT(app_.help(), Not(HasSubstr("required")));
}

TEST_F(HelpTest, TitlesAreBoldInColor) {
  app_.formatter(std::make_shared<HelpFormatter>(true));
  EXPECT_THAT(app_.help(), HasSubstr("\x1b[1mOptions:\x1b[0m\n"));
}

}  // namespace
}  // namespace txl
