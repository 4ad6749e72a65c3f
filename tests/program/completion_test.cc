#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

#include "program/flag_checks.h"
#include "program/help.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// thing [--verbose] walk --pace slow|fast --map FILE
//                   rest list, rest make
class CompletionTest : public ::testing::Test {
 protected:
  CompletionTest() {
    app_.add_flag("--verbose", on_, "says more");
    app_.add_flag("--secret")->group("");
    CLI::App* walk = app_.add_subcommand("walk", "Goes on foot");
    walk->add_option("--pace", text_, "it's the speed")
        ->check(OneOf({"slow", "fast"}));
    walk->add_option("--map", text_, "where")->check(CLI::ExistingFile);
    CLI::App* rest = app_.add_subcommand("rest", "Does nothing");
    rest->add_subcommand("list", "All of it");
    rest->add_subcommand("make", "More of it");
  }

  // What bash suggests after "thing WORDS", the last of them unfinished.
  std::string Suggest(const std::string& words) const {
    // Tests run side by side, each with a script of its own.
    const std::string path = ::testing::TempDir() + "/completion_" +
                             std::to_string(getpid()) + ".bash";
    std::ofstream(path) << CompletionScript(app_, "bash")
                        << "COMP_WORDS=(thing " << words
                        << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                           "_thing\necho \"${COMPREPLY[*]}\"\n";
    FILE* bash = popen(("bash " + path).c_str(), "r");
    std::array<char, 1000> line{};
    const size_t length = fread(line.data(), 1, line.size(), bash);
    EXPECT_EQ(pclose(bash), 0);
    return std::string(line.data(), length);
  }

  CLI::App app_{"Does things - all of them.", "thing"};
  std::string text_;
  bool on_ = false;
};

TEST_F(CompletionTest, BashSuggestsCommandsAndFlags) {
  EXPECT_EQ(Suggest("''"), "walk rest --help --verbose\n");
  EXPECT_EQ(Suggest("wa"), "walk\n");
  EXPECT_EQ(Suggest("--verbose re"), "rest\n");
  EXPECT_EQ(Suggest("walk --p"), "--pace\n");
  EXPECT_EQ(Suggest("rest ''"), "list make --help\n");
  EXPECT_EQ(Suggest("rest make --"), "--help\n");
}

TEST_F(CompletionTest, BashSuggestsTheNamesThatAFlagTakes) {
  EXPECT_EQ(Suggest("walk --pace ''"), "slow fast\n");
  EXPECT_EQ(Suggest("walk --pace f"), "fast\n");
  EXPECT_THAT(Suggest("walk --map /etc/passw"), HasSubstr("/etc/passwd"));
}

TEST_F(CompletionTest, ZshRunsTheScriptOfBash) {
  EXPECT_THAT(CompletionScript(app_, "zsh"),
              HasSubstr("bashcompinit\n" + CompletionScript(app_, "bash")));
}

TEST_F(CompletionTest, FishKnowsWhereWhatMayStand) {
  const std::string script = CompletionScript(app_, "fish");
  EXPECT_THAT(script,
              HasSubstr("complete -c thing -n 'not __fish_seen_subcommand_from "
                        "walk rest' -f -a walk -d 'Goes on foot'\n"));
  EXPECT_THAT(script,
              HasSubstr("-n '__fish_seen_subcommand_from walk' -l pace -x -a "
                        "'slow fast' -d 'it\\'s the speed'\n"));
  EXPECT_THAT(script, HasSubstr(" -l map -r -d 'where'\n"));
  EXPECT_THAT(script, Not(HasSubstr("secret")));
}

TEST_F(CompletionTest, TheManPageSaysWhatHelpSays) {
  const std::string page = ManPage(app_);
  EXPECT_THAT(page, HasSubstr(".TH thing 1 "));
  EXPECT_THAT(page, HasSubstr("thing \\- \\&Does things \\- all of them.\n"));
  EXPECT_THAT(page, HasSubstr(".SH thing walk\n\\&Goes on foot\n"));
  EXPECT_THAT(page, HasSubstr(".SS thing rest list\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\&\\-\\-pace\\fR \\&slow|fast\n"));
  EXPECT_THAT(page, Not(HasSubstr("secret")));
}

TEST_F(CompletionTest, NoLineOfTheManPageBeginsWithAnAccidentalRequest) {
  app_.footer(".dangerous\n'also");
  const std::string page = ManPage(app_);
  EXPECT_THAT(page, HasSubstr("\\&.dangerous\n.br\n\\&'also\n"));
}

}  // namespace
}  // namespace txl
