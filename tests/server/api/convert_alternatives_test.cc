#include "server/api/convert_alternatives.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/api/convert_fixture.h"

namespace txl {
namespace {

using ::testing::ElementsAre;

using Ids = std::vector<int32_t>;

absl::StatusOr<AlternativesParams> Read(const std::string& request,
                                        const RequestLimits& limits = {},
                                        const ModelFacts& facts = ByteModel()) {
  return ReadAlternatives(FromText<v1::ScoreAlternativesRequest>(request),
                          facts, limits);
}

TEST(ReadAlternatives, TakesTextsAndIds) {
  const auto params = Read(
      "session_id: 's' text: 'ab' return_tokens: true "
      "alternatives { text: 'c' } alternatives { tokens { ids: [1, 2] } }");
  ASSERT_TRUE(params.ok()) << params.status();
  EXPECT_EQ(params->session_id, "s");
  EXPECT_THAT(params->context, ElementsAre('a', 'b'));
  EXPECT_THAT(params->alternatives, ElementsAre(Ids{'c'}, Ids{1, 2}));
  EXPECT_TRUE(params->return_tokens);
  EXPECT_EQ(params->tokens(), 5);
}

TEST(ReadAlternatives, NeedsNeitherSessionNorContext) {
  const auto params = Read("alternatives { text: 'c' }");
  ASSERT_TRUE(params.ok()) << params.status();
  EXPECT_EQ(params->session_id, "");
  EXPECT_TRUE(params->context.empty());
  EXPECT_FALSE(params->return_tokens);
}

TEST(ReadAlternatives, NamesTheFieldThatIsWrong) {
  const std::string good = "alternatives { text: 'c' } ";
  EXPECT_EQ(Refusal(Read("")), "INVALID_ARGUMENT FIELD_INVALID alternatives");
  EXPECT_EQ(Refusal(Read("session_id: '/' " + good)),
            "INVALID_ARGUMENT FIELD_INVALID session_id");
  EXPECT_EQ(Refusal(Read("text: '' " + good)),
            "INVALID_ARGUMENT FIELD_INVALID text");
  EXPECT_EQ(Refusal(Read("tokens { ids: 256 } " + good)),
            "INVALID_ARGUMENT FIELD_INVALID tokens.ids[0]");
  EXPECT_EQ(Refusal(Read(good + "alternatives { }")),
            "INVALID_ARGUMENT FIELD_INVALID alternatives[1].input");
  EXPECT_EQ(Refusal(Read(good + "alternatives { text: '' }")),
            "INVALID_ARGUMENT FIELD_INVALID alternatives[1].text");
  EXPECT_EQ(Refusal(Read(good + "alternatives { tokens { } }")),
            "INVALID_ARGUMENT FIELD_INVALID alternatives[1].tokens");
  EXPECT_EQ(
      Refusal(Read(good + good + "alternatives { tokens { ids: [1, 999] } }")),
      "INVALID_ARGUMENT FIELD_INVALID alternatives[2].tokens.ids[1]");
  EXPECT_EQ(Refusal(Read(good, {}, IdModel())),
            "INVALID_ARGUMENT FIELD_INVALID alternatives[0].text");
}

TEST(ReadAlternatives, CountsTheContextWithEachAlternative) {
  RequestLimits limits;
  limits.prompt_tokens = 5;
  limits.alternatives = 2;
  const std::string fits = "alternatives { text: 'abc' } ";
  EXPECT_EQ(Refusal(Read("text: 'ab' " + fits + fits, limits)), "OK");
  EXPECT_EQ(Refusal(Read("text: 'abc' " + fits, limits)),
            "INVALID_ARGUMENT OVER_LIMIT alternatives[0]");
  EXPECT_EQ(Refusal(Read("text: 'abcdef' " + fits, limits)),
            "INVALID_ARGUMENT OVER_LIMIT text");
  EXPECT_EQ(Refusal(Read(fits + fits + fits, limits)),
            "INVALID_ARGUMENT OVER_LIMIT alternatives");
  EXPECT_EQ(
      Refusal(Read("alternatives { tokens { ids: [1,1,1,1,1,1] } }", limits)),
      "INVALID_ARGUMENT OVER_LIMIT alternatives[0].tokens.ids");
}

ScoredToken Token(int32_t id, std::optional<float> logprob) {
  ScoredToken token;
  token.token_id = id;
  token.logprob = logprob;
  return token;
}

TEST(WriteAlternatives, SumsWhatEachHas) {
  AlternativesParams params;
  params.alternatives = {{1, 2}, {3}};
  const auto response = WriteAlternatives(
      params, nullptr, {Token(1, std::nullopt), Token(2, -0.5f), Token(3, -2)});
  ASSERT_EQ(response.scores_size(), 2);
  EXPECT_EQ(response.scores(0).sum_logprob(), -0.5);
  EXPECT_EQ(response.scores(0).token_count(), 2);
  EXPECT_EQ(response.scores(0).tokens_size(), 0);
  EXPECT_EQ(response.scores(1).sum_logprob(), -2);
  EXPECT_EQ(response.scores(1).token_count(), 1);
}

TEST(WriteAlternatives, ShowsEveryTokenWithTheTextThatItHasThere) {
  AlternativesParams params;
  params.context = {'x', 0xc3};  // the beginning of a character
  params.alternatives = {{0xa9, 'a'}, {'b'}, {0xc3}};
  params.return_tokens = true;
  const ModelFacts facts = ByteModel();
  const auto detokenizer = facts.vocabulary->NewDetokenizer();
  const auto response = WriteAlternatives(
      params, detokenizer.get(),
      {Token(0xa9, -1), Token('a', -2), Token('b', -3), Token(0xc3, -4)});
  EXPECT_EQ(response.scores(0).tokens(0).text(), "\xc3\xa9");
  EXPECT_EQ(response.scores(0).tokens(1).text(), "a");
  EXPECT_EQ(response.scores(0).tokens(1).logprob(), -2);
  EXPECT_EQ(response.scores(1).tokens(0).text(),
            "\xef\xbf\xbd"
            "b");
  EXPECT_EQ(response.scores(2).tokens(0).token_id(), 0xc3u);
}

}  // namespace
}  // namespace txl
