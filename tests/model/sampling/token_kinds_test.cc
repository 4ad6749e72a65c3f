#include "model/sampling/token_kinds.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/sampling/some_kinds.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kNotNext = -std::numeric_limits<double>::infinity();

// Ids 0 to 9; 7 is of no kind.
std::vector<TokenKind> Music() {
  return {{"Bar", {{0, 0}}, {{"Bar", "Position"}}},
          {"Position", {{1, 3}, {8, 9}}, {{"Note"}}, 0.5},
          {"Note", {{4, 6}}, std::nullopt, 2}};
}

std::vector<double> LogprobsBehind(int32_t last) {
  std::vector<double> logprobs(10, -1);
  TableOf(Music(), 10)->Forbid(last, absl::MakeSpan(logprobs));
  return logprobs;
}

TEST(TokenKinds, EveryIdIsOfTheKindWhoseRangeHasIt) {
  const auto kinds = TableOf(Music(), 10);
  std::vector<int> found;
  for (int32_t id = 0; id < 10; ++id) found.push_back(kinds->KindOf(id));
  EXPECT_THAT(found, ElementsAre(0, 1, 1, 1, 2, 2, 2, int{kNoTokenKind}, 1, 1));
  EXPECT_EQ(kinds->kind_of().size(), 10u);
  for (const int32_t outside : {-1, 10, 1 << 30}) {
    EXPECT_EQ(kinds->KindOf(outside), kNoTokenKind);
  }
}

TEST(TokenKinds, OnlyIdsOfTheNextKindsStandBehindAnId) {
  EXPECT_THAT(LogprobsBehind(0), ElementsAre(-1, -1, -1, -1, kNotNext, kNotNext,
                                             kNotNext, kNotNext, -1, -1));
  EXPECT_THAT(LogprobsBehind(9),
              ElementsAre(kNotNext, kNotNext, kNotNext, kNotNext, -1, -1, -1,
                          kNotNext, kNotNext, kNotNext));
}

TEST(TokenKinds, AnythingStandsBehindAKindWithoutNextAndAnIdOfNoKind) {
  for (const int32_t last : {5, 7, -1, 10}) {
    EXPECT_THAT(LogprobsBehind(last),
                ElementsAre(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1))
        << last;
  }
}

TEST(TokenKinds, TheTemperatureIsThatOfTheKindBefore) {
  const auto kinds = TableOf(Music(), 10);
  EXPECT_EQ(kinds->After(0).next_temperature, 1);
  EXPECT_EQ(kinds->After(2).next_temperature, 0.5);
  EXPECT_EQ(kinds->After(4).next_temperature, 2);
  EXPECT_EQ(kinds->After(7).next_temperature, 1);
}

TEST(TokenKinds, SixtyFourKindsFollowEachOther) {
  std::vector<TokenKind> kinds;
  for (int32_t i = 0; i < 64; ++i) {
    kinds.push_back(
        {absl::StrCat(i), {{i, i}}, {{absl::StrCat((i + 1) % 64)}}});
  }
  const auto table = TableOf(kinds, 64);
  for (int32_t last = 0; last < 64; ++last) {
    for (int32_t id = 0; id < 64; ++id) {
      EXPECT_EQ(HoldsKind(table->After(last).next, table->KindOf(id)),
                id == (last + 1) % 64);
    }
  }
  kinds.push_back({"one more", {{64, 64}}});
  EXPECT_THAT(std::string(TokenKinds::Make(kinds, 65).status().message()),
              StartsWith("kinds: must be at most 64, are 65"));
}

struct BadKinds {
  const char* name;
  void (*spoil)(std::vector<TokenKind>& kinds);
  const char* message;
};

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

const BadKinds kBadKinds[] = {
    {"NoName", [](auto& kinds) { kinds[1].name = ""; },
     "kinds: the name of a kind is empty"},
    {"OneNameTwice", [](auto& kinds) { kinds[2].name = "Bar"; },
     "kinds.Bar: two kinds"},
    {"NoToken", [](auto& kinds) { kinds[2].tokens = {}; },
     "kinds.Note.tokens: must have at least one id"},
    {"IdBehindTheVocabulary",
     [](auto& kinds) {
       kinds[2].tokens = {{4, 10}};
     },
     "kinds.Note.tokens: 4 to 10 are not ids of a vocabulary of 10"},
    {"NegativeId",
     [](auto& kinds) {
       kinds[0].tokens = {{-1, 0}};
     },
     "kinds.Bar.tokens: -1 to 0"},
    {"RangeBackwards",
     [](auto& kinds) {
       kinds[1].tokens = {{3, 1}};
     },
     "kinds.Position.tokens: 3 to 1"},
    {"IdInTwoKinds",
     [](auto& kinds) {
       kinds[2].tokens = {{3, 5}};
     },
     "kinds.Note.tokens: id 3 is in kind Position, too"},
    {"IdTwiceInOneKind",
     [](auto& kinds) {
       kinds[0].tokens = {{0, 0}, {0, 0}};
     },
     "kinds.Bar.tokens: id 0 is in kind Bar, too"},
    {"NextIsNoKind",
     [](auto& kinds) {
       kinds[0].next = {{"Bar", "Chord"}};
     },
     "kinds.Bar.next: no kind is named Chord"},
    {"NextIsEmpty",
     [](auto& kinds) { kinds[0].next = std::vector<std::string>(); },
     "kinds.Bar.next: names no kind"},
    {"TemperatureZero", [](auto& kinds) { kinds[2].next_temperature = 0; },
     "kinds.Note.next_temperature: must be in [0.01, 100], is 0"},
    {"TemperatureTooLow",
     [](auto& kinds) { kinds[2].next_temperature = 0.009; },
     "kinds.Note.next_temperature: must be in"},
    {"TemperatureTooHigh",
     [](auto& kinds) { kinds[2].next_temperature = 100.1; },
     "kinds.Note.next_temperature: must be in"},
    {"TemperatureNan",
     [](auto& kinds) { kinds[2].next_temperature = kNoNumber; },
     "kinds.Note.next_temperature: must be in"},
    {"NameOfTwoLines",
     [](auto& kinds) {
       kinds[2] = {"a\nb", {}};
     },
     "kinds.a\\nb.tokens: must have at least one id"},
};

class BadTokenKinds : public testing::TestWithParam<BadKinds> {};

TEST_P(BadTokenKinds, AreRefusedNamingTheField) {
  std::vector<TokenKind> kinds = Music();
  GetParam().spoil(kinds);
  const absl::Status status = TokenKinds::Make(kinds, 10).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), StartsWith(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(All, BadTokenKinds, testing::ValuesIn(kBadKinds),
                         [](const auto& info) {
                           return std::string(info.param.name);
                         });

TEST(TokenKinds, TemperaturesAtBothEndsAreTaken) {
  std::vector<TokenKind> kinds = Music();
  for (const double temperature : {0.01, 100.0}) {
    kinds[0].next_temperature = temperature;
    EXPECT_TRUE(TokenKinds::Make(kinds, 10).ok()) << temperature;
  }
}

}  // namespace
}  // namespace txl
