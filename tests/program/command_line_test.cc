#include "program/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "program/flag_checks.h"
#include "program/help.h"
#include "program/version.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() {
    SetUpProgram(app_);
    app_.require_subcommand(1);
    CLI::App* walk = app_.add_subcommand("walk", "Goes on foot");
    walk->add_option("--distance", distance_, "how far");
    CLI::App* rest = app_.add_subcommand("rest", "Does nothing");
    rest->require_subcommand(1);
    rest->add_subcommand("list", "All of it");
  }

  std::optional<int> Parse(std::vector<std::string> words) {
    words.insert(words.begin(), "thing");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const std::optional<int> code = ParseCommandLine(
        app_, static_cast<int>(argv.size()), argv.data(), /*usage_exit=*/2);
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return code;
  }

  CLI::App app_{"Does things.", "thing"};
  int distance_ = 0;
  std::string out_;
  std::string err_;
};

TEST_F(CommandLineTest, GoesOnWithARightOne) {
  EXPECT_EQ(Parse({"walk", "--distance", "7"}), std::nullopt);
  EXPECT_EQ(distance_, 7);
  EXPECT_EQ(out_ + err_, "");
}

class VariablesTest : public CommandLineTest {
 protected:
  VariablesTest() {
    for (const char* name : {"first", "second", "third"}) {
      CLI::App* verb = app_.add_subcommand(name, "One of three");
      verb->add_option("--place", place_, "where")
          ->envname("THING_PLACE")
          ->check(OneOf({"here", "there"}));
      verb->callback([this, name] { called_ += name; });
    }
  }
  ~VariablesTest() override { unsetenv("THING_PLACE"); }

  std::string place_;
  std::string called_;
};

TEST_F(VariablesTest, CountWhereTheFlagIsAbsent) {
  setenv("THING_PLACE", "there", 1);
  EXPECT_EQ(Parse({"second"}), std::nullopt);
  EXPECT_EQ(place_, "there");
  EXPECT_EQ(called_, "second");
  setenv("THING_PLACE", "nowhere", 1);
  EXPECT_EQ(Parse({"second"}), 2);
  EXPECT_THAT(err_,
              HasSubstr("second: THING_PLACE: --place: 'nowhere' is not"));
  EXPECT_EQ(Parse({"second", "--place", "nowhere"}), 2);
  EXPECT_THAT(err_, HasSubstr("thing second: --place: 'nowhere' is not"));
}

// The commands that were not called share the flag's target.
TEST_F(VariablesTest, NeverCountBesideTheFlag) {
  for (const char* variable : {"there", "nowhere"}) {
    setenv("THING_PLACE", variable, 1);
    for (const char* verb : {"first", "second", "third"}) {
      called_.clear();
      EXPECT_EQ(Parse({verb, "--place", "here"}), std::nullopt) << err_;
      EXPECT_EQ(place_, "here") << verb;
      EXPECT_EQ(called_, verb);
    }
    EXPECT_EQ(Parse({"walk", "--distance", "1"}), std::nullopt) << err_;
  }
}

TEST_F(CommandLineTest, ReadsNumbersAsTheyAreMeant) {
  EXPECT_EQ(Parse({"walk", "--distance", "010"}), std::nullopt);
  EXPECT_EQ(distance_, 10);
  EXPECT_EQ(Parse({"walk", "--distance", "1e3"}), std::nullopt);
  EXPECT_EQ(distance_, 1000);
  EXPECT_EQ(Parse({"walk", "--distance", "0x10"}), 2);
  EXPECT_THAT(err_, HasSubstr("--distance: '0x10' is not a whole number"));
}

TEST_F(CommandLineTest, ReadsNaturalNumbersAndListsOfThem) {
  uint64_t seed = 0;
  std::optional<uint32_t> id;
  std::vector<uint32_t> ids;
  std::optional<double> share;
  app_.require_subcommand(0);
  app_.add_option("--seed", seed);
  app_.add_option("--id", id);
  app_.add_option("--ids", ids)->delimiter(',');
  app_.add_option("--share", share);
  EXPECT_EQ(Parse({"--seed", "18446744073709551615", "--id", "007", "--ids",
                   "08,09", "--share", ".5"}),
            std::nullopt);
  EXPECT_EQ(seed, 18446744073709551615u);
  EXPECT_EQ(id, 7u);
  EXPECT_EQ(ids, (std::vector<uint32_t>{8, 9}));
  EXPECT_EQ(share, 0.5);
  EXPECT_EQ(Parse({"--seed", "-1"}), 2);
  EXPECT_THAT(err_, HasSubstr("--seed: -1 is negative"));
  EXPECT_EQ(Parse({"--id", "-1"}), 2);
  EXPECT_EQ(Parse({"--share", "inf"}), 2);
  EXPECT_THAT(err_, HasSubstr("--share: 'inf' is not a number"));
}

TEST_F(CommandLineTest, NamesTheRangeOfTheTypeThatANumberIsTooLargeFor) {
  uint64_t seed = 0;
  int64_t steps = 0;
  std::optional<uint32_t> id;
  std::vector<uint32_t> ids;
  double share = 0;
  app_.require_subcommand(0);
  app_.add_option("--seed", seed)->envname("THING_SEED");
  app_.add_option("--steps", steps)->check(AtLeast(1));
  app_.add_option("--few", steps)->check(WholeBetween(1, 9, 99));
  app_.add_option("--id", id);
  app_.add_option("--ids", ids);
  app_.add_option("--share", share);
  const auto error = [&](const std::string& flag, const std::string& value) {
    EXPECT_EQ(Parse({flag, value}), 2) << flag;
    return err_.substr(0, err_.find('\n'));
  };
  const std::string natural = " is not in 0..18446744073709551615";
  setenv("THING_SEED", "18446744073709551616", 1);
  EXPECT_EQ(Parse({}), 2);
  EXPECT_THAT(err_,
              HasSubstr("THING_SEED: --seed: 18446744073709551616" + natural));
  unsetenv("THING_SEED");
  EXPECT_EQ(error("--seed", "18446744073709551616"),
            "thing: --seed: 18446744073709551616" + natural);
  EXPECT_EQ(error("--seed", "2e19"),
            "thing: --seed: 20000000000000000000" + natural);
  EXPECT_EQ(error("--steps", "9223372036854775808"),
            "thing: --steps: 9223372036854775808 is not in "
            "-9223372036854775808..9223372036854775807");
  EXPECT_EQ(error("--few", "9223372036854775808"),
            "thing: --few: 9223372036854775808 is not in 1..9");
  EXPECT_EQ(error("--id", "4294967296"),
            "thing: --id: 4294967296 is not in 0..4294967295");
  EXPECT_EQ(error("--ids", "4294967296"),
            "thing: --ids: 4294967296 is not in 0..4294967295");
  EXPECT_EQ(error("--share", "1e400"),
            "thing: --share: '1e400' is not a number");
  EXPECT_EQ(Parse({"walk", "--distance", "-2147483649"}), 2);
  EXPECT_THAT(err_, HasSubstr("--distance: -2147483649 is not in "
                              "-2147483648..2147483647"));
}

TEST_F(CommandLineTest, VersionCompletionAndManPageNeedNoCommand) {
  EXPECT_EQ(Parse({"--version"}), 0);
  EXPECT_EQ(out_, std::string("thing ") + kVersion + "\n");
  EXPECT_EQ(Parse({"--completion", "fish"}), 0);
  EXPECT_EQ(out_, CompletionScript(app_, "fish") + "\n");
  EXPECT_EQ(Parse({"--man-page"}), 0);
  EXPECT_EQ(out_, ManPage(app_) + "\n");
  EXPECT_EQ(Parse({"--completion", "tcsh"}), 2);
  EXPECT_THAT(err_, HasSubstr("'tcsh' is not one of bash, zsh, fish"));
}

TEST_F(CommandLineTest, HelpIsThatOfTheCommand) {
  EXPECT_EQ(Parse({"walk", "--help"}), 0);
  EXPECT_THAT(out_, HasSubstr("--distance INT"));
  EXPECT_EQ(err_, "");
}

TEST_F(CommandLineTest, AMisspeltCommandIsNamedWithTheNearest) {
  EXPECT_EQ(Parse({"wlk"}), 2);
  EXPECT_EQ(err_,
            "thing: wlk: no such command; did you mean walk?\n"
            "Try 'thing --help'.\n");
  EXPECT_EQ(Parse({"rest", "lst"}), 2);
  EXPECT_EQ(err_,
            "thing rest: lst: no such command; did you mean list?\n"
            "Try 'thing rest --help'.\n");
  EXPECT_EQ(Parse({"telemetry"}), 2);
  EXPECT_THAT(err_, HasSubstr("telemetry: no such command\n"));
}

TEST_F(CommandLineTest, AMisspeltFlagIsNamedWithTheNearest) {
  EXPECT_EQ(Parse({"walk", "--distnace", "7"}), 2);
  EXPECT_THAT(err_,
              HasSubstr("thing walk: --distnace: no such flag; did you mean "
                        "--distance?\n"));
}

TEST_F(CommandLineTest, AFlagBeforeItsCommandIsSaidToComeAfterIt) {
  for (const char* flag : {"--distance", "--distance=7"}) {
    EXPECT_EQ(Parse({flag, "walk"}), 2);
    EXPECT_THAT(err_, HasSubstr("thing walk: --distance: comes after the "
                                "command, as in 'thing walk --distance'\n"));
  }
  EXPECT_EQ(Parse({"--distance", "7"}), 2);
  EXPECT_THAT(err_, HasSubstr("thing: --distance: comes after the command\n"));
}

TEST_F(CommandLineTest, AMissingCommandIsListed) {
  EXPECT_EQ(Parse({}), 2);
  EXPECT_THAT(err_, HasSubstr("thing: a command is missing: walk, rest\n"));
}

TEST_F(CommandLineTest, WordsLeftOverStandInTheirOrder) {
  EXPECT_EQ(Parse({"walk", "one", "two", "three"}), 2);
  EXPECT_THAT(err_, HasSubstr("thing walk: not understood: one two three\n"));
}

TEST_F(CommandLineTest, AFlagIsGivenOnce) {
  EXPECT_EQ(Parse({"walk", "--distance", "1", "--distance=2"}), 2);
  EXPECT_THAT(err_, HasSubstr("thing walk: --distance: is given twice\n"));
  EXPECT_EQ(
      Parse({"walk", "--distance", "1", "--distance", "1", "--distance", "1"}),
      2);
  EXPECT_THAT(err_, HasSubstr("--distance: is given 3 times\n"));
}

TEST_F(CommandLineTest, OtherMistakesNameTheFlag) {
  EXPECT_EQ(Parse({"walk", "--distance", "far"}), 2);
  EXPECT_THAT(err_, HasSubstr("--distance"));
}

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class UnknownFlag : public ::testing::Test {
 protected:
  UnknownFlag() { AddUnknownFlag(app_, &word_); }

  CLI::App app_;
  std::string word_;
};

TEST_F(UnknownFlag, GivesItsWord) {
  app_.parse("");
  EXPECT_EQ(word_, "");
  app_.parse("--unknown skip");
  EXPECT_EQ(word_, kSkipUnknown);
  app_.parse("--unknown unk");
  EXPECT_EQ(word_, kUnknownSymbol);
}

TEST_F(UnknownFlag, AnotherWordIsToldTheTwo) {
  try {
    app_.parse("--unknown drop");
    FAIL();
  } catch (const CLI::ParseError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'drop' is not one of skip, unk"));
  }
}

TEST_F(UnknownFlag, ShowsItsWordsInHelpAndCompletion) {
  EXPECT_THAT(FactsOf(*app_.get_option("--unknown")).choices,
              ElementsAre("skip", "unk"));
}

}  // namespace

}  // namespace txl
