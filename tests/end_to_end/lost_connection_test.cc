// The connection is lost in the middle of a turn: the client goes on with the
// same request, and the user sees one turn.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/retrying_client.h"
#include "tests/end_to_end/cutting_proxy.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

constexpr int kTurnTokens = 50;
constexpr int64_t kBytesOfTwoTurns = 4000;

class LostConnection : public ::testing::Test {
 protected:
  LostConnection() {
    ChannelOptions options;
    options.address = proxy_.address();
    auto client = Client::Create(options);
    EXPECT_TRUE(client.ok()) << client.status();
    through_proxy_ = *std::move(client);
  }

  static v1::GenerateRequest Turn(const std::string& session, uint64_t seed) {
    v1::GenerateRequest request = Greedy(
        session, RandomIds(seed, 1 + seed % 20, kVocabulary), kTurnTokens);
    request.mutable_sampling()->set_temperature(1.5);
    request.mutable_sampling()->set_seed(seed);
    request.set_expected_position(0);
    return request;
  }

  struct Joined {
    absl::Status status;
    std::vector<uint32_t> ids;
    std::vector<float> logprobs;
    v1::Finished finished;
    int started = 0, finishes = 0;
  };
  // `on_token` gets the number of tokens so far.
  Joined Run(const v1::GenerateRequest& request,
             const std::function<void(int)>& on_token) {
    RetryPolicy policy;
    policy.max_failures = 1000;  // a busy machine may not even connect
    policy.first_delay = absl::Milliseconds(1);
    policy.max_delay = absl::Milliseconds(200);
    Joined joined;
    joined.status =
        RetryingClient(through_proxy_.get(), policy)
            .Generate(request, {}, [&](const v1::GenerateResponse& response) {
              joined.started += response.has_started() ? 1 : 0;
              joined.finishes += response.has_finished() ? 1 : 0;
              if (response.has_finished()) {
                joined.finished = response.finished();
              }
              if (!response.has_token()) return;
              EXPECT_EQ(response.token().index(),
                        static_cast<int64_t>(joined.ids.size()));
              joined.ids.push_back(response.token().token_id());
              joined.logprobs.push_back(response.token().logprob());
              on_token(static_cast<int>(joined.ids.size()));
            });
    return joined;
  }

  // As the turn that nothing cut: every id and bit, no gap, nothing twice.
  void ExpectWhole(const std::string& session, const Joined& joined,
                   uint64_t seed) {
    ASSERT_TRUE(joined.status.ok()) << joined.status;
    const std::string uncut = absl::StrCat("uncut-", session);
    CreateSession(server_.client(), uncut);
    const TurnOutput whole = RunTurn(server_.client(), Turn(uncut, seed));
    EXPECT_EQ(joined.ids, whole.ids);
    EXPECT_EQ(joined.logprobs, whole.logprobs);
    EXPECT_EQ(joined.started, 1);
    EXPECT_EQ(joined.finishes, 1);
    EXPECT_EQ(joined.finished.position(), whole.finished.position());
    EXPECT_EQ(joined.finished.reason(), whole.finished.reason());
    const v1::GetSessionResponse after = IdleSession(server_.client(), session);
    const v1::GetSessionResponse expected =
        IdleSession(server_.client(), uncut);
    EXPECT_EQ(after.session().position(), expected.session().position());
    EXPECT_TRUE(std::equal(after.token_ids().begin(), after.token_ids().end(),
                           expected.token_ids().begin(),
                           expected.token_ids().end()));
  }

  ServerProcess server_{GoldenModel("kimi-char"), {"--slots", "4"}};
  CuttingProxy proxy_{server_.address()};
  std::unique_ptr<Client> through_proxy_;
};

TEST_F(LostConnection, AtAnyTokenCostsNothing) {
  for (int cut = 0; cut <= kTurnTokens; ++cut) {
    SCOPED_TRACE(cut);
    const std::string session = absl::StrCat("cut-at-", cut);
    CreateSession(server_.client(), session);
    const int64_t cuts = proxy_.cuts();
    if (cut == 0) proxy_.Cut();
    const Joined joined = Run(Turn(session, cut), [&](int tokens) {
      if (tokens == cut) proxy_.Cut();
    });
    ExpectWhole(session, joined, cut);
    if (cut > 0) {
      EXPECT_TRUE(WaitUntil([&] { return proxy_.cuts() > cuts; }));
    }
  }
}

// TXL_CUT_TURNS: how many turns, for long runs.
TEST_F(LostConnection, AtRandomCostsNothing) {
  const char* turns = std::getenv("TXL_CUT_TURNS");
  const int count = turns == nullptr ? 15 : std::atoi(turns);
  proxy_.CutAtRandom(kBytesOfTwoTurns);
  for (int i = 0; i < count && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const std::string session = absl::StrCat("random-", i);
    CreateSession(server_.client(), session);
    const Joined joined = Run(Turn(session, i), [](int) {});
    ExpectWhole(session, joined, i);
    for (const std::string& id : {session, absl::StrCat("uncut-", session)}) {
      v1::DeleteSessionRequest request;
      request.set_session_id(id);
      EXPECT_TRUE(server_.client().DeleteSession(request).ok());
    }
  }
  EXPECT_GT(proxy_.cuts(), count / 4);
  std::printf("%d turns, %d connections lost\n", count,
              static_cast<int>(proxy_.cuts()));
}

}  // namespace
}  // namespace txl::testing
