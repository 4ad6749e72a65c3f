// Scores through gRPC equal what the original code computes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_replace.h"
#include "tests/end_to_end/golden_case.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

class Exactness : public ::testing::TestWithParam<std::string> {
 protected:
  // `scored` stands at positions first, first + 1, ... of the text.
  template <typename Scored>
  void ExpectGolden(const Scored& scored, int64_t first) {
    double sum = 0;
    for (int i = 0; i < scored.size(); ++i) {
      const int64_t t = first + i;
      ASSERT_EQ(scored[i].token_id(), golden_.tokens[t]);
      if (t == 0) {
        EXPECT_FALSE(scored[i].has_logprob());
        continue;
      }
      ASSERT_TRUE(scored[i].has_logprob()) << t;
      EXPECT_NEAR(scored[i].logprob(),
                  golden_.Logprob(t - 1, golden_.tokens[t]), golden_.tolerance)
          << "token " << t;
      sum += scored[i].logprob();
    }
    sum_ = sum;
  }

  absl::Span<const uint32_t> Tokens(int64_t begin, int64_t end) const {
    return absl::MakeSpan(golden_.tokens).subspan(begin, end - begin);
  }

  v1::ScoreResponse Score(const std::string& session_id, int64_t begin,
                          uint32_t logprobs = 0) {
    v1::ScoreRequest request;
    request.set_session_id(session_id);
    for (const uint32_t id : Tokens(begin, Count())) {
      request.mutable_tokens()->add_ids(id);
    }
    request.set_logprobs(logprobs);
    const auto response = server_.client().Score(request);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.ok() ? *response : v1::ScoreResponse();
  }

  // Each feeds the text in its own way.
  void ScoreWhole();
  void ScoreAfterCuts();
  void AppendInPieces();
  void GenerateOne();

  int64_t Count() const { return static_cast<int64_t>(golden_.tokens.size()); }

  const GoldenCase golden_ = LoadGoldenCase(GetParam());
  ServerProcess server_{golden_.directory, {"--slots", "4"}};
  double sum_ = 0;
};

void Exactness::ScoreWhole() {
  const v1::ScoreResponse whole = Score("", 0, 3);
  ASSERT_EQ(whole.tokens_size(), Count());
  ExpectGolden(whole.tokens(), 0);
  EXPECT_NEAR(whole.sum_logprob(), sum_, 1e-9 * std::abs(sum_));
  for (int64_t t = 1; t < Count(); ++t) {
    const auto& alternatives = whole.tokens(t).top_logprobs();
    ASSERT_EQ(alternatives.size(), 3) << t;
    const double* row = &golden_.logprobs[(t - 1) * golden_.vocabulary];
    EXPECT_NEAR(alternatives[0].logprob(),
                *std::max_element(row, row + golden_.vocabulary),
                golden_.tolerance);
    for (const v1::TokenLogprob& other : alternatives) {
      EXPECT_NEAR(other.logprob(), row[other.token_id()], golden_.tolerance);
    }
  }
}

void Exactness::ScoreAfterCuts() {
  const int64_t memory = golden_.memory_length;
  for (const int64_t cut :
       std::set<int64_t>{1, 2, memory, memory + 1, Count() - 1}) {
    const std::string session = "cut-" + std::to_string(cut);
    CreateSession(server_.client(), session);
    const auto appended = Append(server_.client(), session, Tokens(0, cut));
    ASSERT_TRUE(appended.ok()) << appended.status();
    EXPECT_EQ(appended->position(), cut);
    const v1::ScoreResponse rest = Score(session, cut);
    ASSERT_EQ(rest.tokens_size(), Count() - cut);
    ExpectGolden(rest.tokens(), cut);
    // Scoring left the session alone: once more gives the same.
    ExpectGolden(Score(session, cut).tokens(), cut);
    EXPECT_EQ(IdleSession(server_.client(), session).session().position(), cut);
  }
}

void Exactness::AppendInPieces() {
  CreateSession(server_.client(), "pieces");
  int64_t position = 0;
  for (int64_t length = 1; position < Count(); length += 6) {
    const int64_t end = std::min(position + length, Count());
    const auto response =
        Append(server_.client(), "pieces", Tokens(position, end), true);
    ASSERT_TRUE(response.ok()) << response.status();
    ASSERT_EQ(response->scored_size(), end - position);
    ExpectGolden(response->scored(), position);
    position = end;
  }
}

void Exactness::GenerateOne() {
  const TurnOutput turn =
      RunTurn(server_.client(), Greedy("", Tokens(0, Count()), 1));
  ASSERT_EQ(turn.ids.size(), 1u) << turn.status;
  const double* row = &golden_.logprobs[(Count() - 1) * golden_.vocabulary];
  EXPECT_NEAR(turn.logprobs[0],
              *std::max_element(row, row + golden_.vocabulary),
              golden_.tolerance);
  EXPECT_NEAR(turn.logprobs[0], row[turn.ids[0]], golden_.tolerance);
}

TEST_P(Exactness, OfLogProbabilitiesHoweverTheTextIsFed) {
  ScoreWhole();
  ScoreAfterCuts();
  AppendInPieces();
  GenerateOne();
}

INSTANTIATE_TEST_SUITE_P(Golden, Exactness,
                         ::testing::ValuesIn(GoldenCaseNames()),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           return absl::StrReplaceAll(info.param, {{"-", "_"}});
                         });

}  // namespace
}  // namespace txl::testing
