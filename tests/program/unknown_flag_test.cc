#include "program/unknown_flag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/help.h"

namespace txl {
namespace {

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
    EXPECT_THAT(error.what(), HasSubstr("'drop' is none of skip, unk"));
  }
}

TEST_F(UnknownFlag, ShowsItsWordsInHelpAndCompletion) {
  EXPECT_THAT(FactsOf(*app_.get_option("--unknown")).choices,
              ElementsAre("skip", "unk"));
}

}  // namespace
}  // namespace txl
