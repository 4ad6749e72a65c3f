// ScoreAlternatives of a real model: the bits of Score.

#include <gtest/gtest.h>

#include "tests/end_to_end/golden_case.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

using Ids = std::vector<uint32_t>;

class AlternativesOfGoldenModels
    : public ::testing::TestWithParam<std::string> {};

void SetIds(const Ids& ids, v1::TokenIds* tokens) {
  tokens->mutable_ids()->Assign(ids.begin(), ids.end());
}

std::vector<Ids> SomeAlternatives(int64_t vocabulary) {
  std::vector<Ids> alternatives;
  for (int i = 0; i < 24; ++i) {
    Ids ids = RandomIds(i % 4, 12, vocabulary);
    const Ids end = RandomIds(100 + i, 12, vocabulary);
    std::copy(end.begin() + i % 12, end.end(), ids.begin() + i % 12);
    alternatives.push_back(ids);
  }
  alternatives.push_back(RandomIds(9, 1, vocabulary));
  return alternatives;
}

void ExpectBitsOfScore(Client& client, const std::string& session,
                       const Ids& context,
                       const std::vector<Ids>& alternatives) {
  v1::ScoreAlternativesRequest request;
  request.set_session_id(session);
  request.set_return_tokens(true);
  if (!context.empty()) SetIds(context, request.mutable_tokens());
  for (const Ids& ids : alternatives) {
    SetIds(ids, request.add_alternatives()->mutable_tokens());
  }
  const auto all = client.ScoreAlternatives(request);
  ASSERT_TRUE(all.ok()) << all.status();
  for (size_t i = 0; i < alternatives.size(); ++i) {
    v1::ScoreRequest one;
    one.set_session_id(session);
    Ids ids = context;
    ids.insert(ids.end(), alternatives[i].begin(), alternatives[i].end());
    SetIds(ids, one.mutable_tokens());
    const auto alone = client.Score(one);
    ASSERT_TRUE(alone.ok()) << alone.status();
    const auto& tokens = all->scores(static_cast<int>(i)).tokens();
    ASSERT_EQ(tokens.size(), static_cast<int>(alternatives[i].size()));
    for (int j = 0; j < tokens.size(); ++j) {
      const v1::ScoredToken& expected =
          alone->tokens(static_cast<int>(context.size()) + j);
      EXPECT_EQ(tokens[j].has_logprob(), expected.has_logprob());
      EXPECT_EQ(tokens[j].logprob(), expected.logprob()) << i << ", " << j;
    }
  }
}

TEST_P(AlternativesOfGoldenModels, HaveTheBitsOfScore) {
  const GoldenCase golden = LoadGoldenCase(GetParam());
  const std::vector<Ids> alternatives = SomeAlternatives(golden.vocabulary);
  for (const char* slots : {"1", "6"}) {
    ServerProcess server(golden.directory, {"--slots", slots});
    Client& client = server.client();
    CreateSession(client, "s");
    const Ids before = RandomIds(50, 40, golden.vocabulary);
    ASSERT_TRUE(Append(client, "s", before).ok());
    for (const char* session : {"", "s"}) {
      for (const int64_t context : {0, 1, 60}) {
        ExpectBitsOfScore(client, session,
                          RandomIds(51, context, golden.vocabulary),
                          alternatives);
      }
    }
    EXPECT_EQ(IdleSession(client, "s").session().position(), 40);
    server.Status();
  }
}

INSTANTIATE_TEST_SUITE_P(All, AlternativesOfGoldenModels,
                         ::testing::ValuesIn(GoldenCaseNames()));

}  // namespace
}  // namespace txl::testing
