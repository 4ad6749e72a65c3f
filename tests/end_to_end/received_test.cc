// A turn goes on where its client is, also on a server that has never seen it,
// with the bits of the turn that nothing broke off.

#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/retrying_client.h"
#include "tests/end_to_end/cutting_proxy.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

constexpr int kTokens = 60;
constexpr int kContext = 150;

struct Answer {
  absl::Status status;
  v1::Started started;
  v1::Finished finished;
  std::vector<v1::Token> tokens;
};

Answer Ask(Client& client, const v1::GenerateRequest& request,
           const std::function<void(size_t)>& on_token = nullptr) {
  Answer answer;
  answer.status =
      client.Generate(request, {}, [&](const v1::GenerateResponse& response) {
        if (response.has_started()) answer.started = response.started();
        if (response.has_finished()) answer.finished = response.finished();
        if (!response.has_token()) return;
        answer.tokens.push_back(response.token());
        if (on_token) on_token(answer.tokens.size());
      });
  return answer;
}

// Every parameter that a draw depends on.
v1::GenerateRequest Turn(const std::string& session) {
  v1::GenerateRequest request =
      Greedy(session, RandomIds(5, 20, kVocabulary), kTokens);
  v1::SamplingParams& sampling = *request.mutable_sampling();
  sampling.set_temperature(1.3);
  sampling.set_top_k(40);
  sampling.set_repetition_penalty(1.2);
  sampling.set_presence_penalty(0.3);
  sampling.set_penalty_window(30);
  request.mutable_output()->set_logprobs(4);
  if (!session.empty()) request.set_request_id("turn");
  return request;
}

v1::GenerateRequest Again(v1::GenerateRequest request, const Answer& whole,
                          size_t count) {
  v1::Received& received = *request.mutable_received();
  received.set_seed(whole.started.seed());
  for (size_t i = 0; i < count; ++i) {
    received.add_token_ids(whole.tokens[i].token_id());
  }
  return request;
}

// Texts, ids, and the bits of all log-probabilities. How much of the prompt was
// cached may differ: an equal prompt may have been here before.
void ExpectRest(const Answer& rest, const Answer& whole, size_t received) {
  ASSERT_TRUE(rest.status.ok()) << rest.status;
  ASSERT_EQ(rest.tokens.size() + received, whole.tokens.size());
  for (size_t i = 0; i < rest.tokens.size(); ++i) {
    EXPECT_EQ(rest.tokens[i].SerializeAsString(),
              whole.tokens[received + i].SerializeAsString())
        << "token " << received + i;
  }
  EXPECT_EQ(rest.started.seed(), whole.started.seed());
  EXPECT_EQ(rest.finished.reason(), whole.finished.reason());
  EXPECT_EQ(rest.finished.text(), whole.finished.text());
  EXPECT_EQ(rest.finished.position(), whole.finished.position());
  EXPECT_EQ(rest.finished.usage().prompt_tokens(),
            whole.finished.usage().prompt_tokens());
  EXPECT_EQ(rest.finished.usage().generated_tokens(),
            whole.finished.usage().generated_tokens());
}

class ReceivedTokens : public ::testing::Test {
 protected:
  static void MakeSession(Client& client, const std::string& session) {
    CreateSession(client, session);
    EXPECT_TRUE(
        Append(client, session, RandomIds(7, kContext, kVocabulary)).ok());
  }

  ServerProcess first_{GoldenModel("kimi-char"), {"--slots", "4"}};
  ServerProcess second_{GoldenModel("kimi-char"), {"--slots", "2"}};
};

TEST_F(ReceivedTokens, AreTakenOnByAServerThatHasNeverSeenTheTurn) {
  MakeSession(first_.client(), "whole");
  v1::GenerateRequest turn = Turn("whole");
  const Answer whole = Ask(first_.client(), turn);
  ASSERT_EQ(whole.tokens.size(), static_cast<size_t>(kTokens));
  for (const size_t count : {0, 1, 2, 29, kTokens - 1, kTokens}) {
    SCOPED_TRACE(count);
    const std::string session = absl::StrCat("copy-", count);
    MakeSession(second_.client(), session);
    turn.set_session_id(session);
    ExpectRest(Ask(second_.client(), Again(turn, whole, count)), whole, count);
    // And are told again like those that it sampled.
    ExpectRest(Ask(second_.client(), turn), whole, 0);
  }
}

TEST_F(ReceivedTokens, LetATurnWithoutASessionOutliveItsServer) {
  v1::GenerateRequest turn = Turn("");
  turn.mutable_stop()->set_max_tokens(4000);  // it still runs when it is cut
  const Answer broken = Ask(first_.client(), turn, [&](size_t tokens) {
    if (tokens == 23) first_.Signal(SIGKILL);
  });
  EXPECT_FALSE(broken.status.ok());
  EXPECT_EQ(first_.Wait(), 128 + SIGKILL);
  v1::GenerateRequest seeded = turn;
  seeded.mutable_sampling()->set_seed(broken.started.seed());
  const Answer whole = Ask(second_.client(), seeded);
  ASSERT_TRUE(whole.status.ok()) << whole.status;
  const size_t had = broken.tokens.size();
  ASSERT_GE(had, 23u);
  for (size_t i = 0; i < had; ++i) {
    EXPECT_EQ(broken.tokens[i].SerializeAsString(),
              whole.tokens[i].SerializeAsString());
  }
  ExpectRest(Ask(second_.client(), Again(turn, broken, had)), whole, had);
}

TEST_F(ReceivedTokens, LetTheClientGoOnWithoutASession) {
  CuttingProxy proxy(first_.address());
  ChannelOptions options;
  options.address = proxy.address();
  const auto client = Client::Create(options);
  ASSERT_TRUE(client.ok()) << client.status();
  RetryPolicy policy;
  policy.max_failures = 1000;  // a busy machine may not even connect
  policy.first_delay = absl::Milliseconds(1);
  policy.max_delay = absl::Milliseconds(200);
  Answer joined;
  int started = 0;
  joined.status =
      RetryingClient(client->get(), policy)
          .Generate(Turn(""), {}, [&](const v1::GenerateResponse& response) {
            if (response.has_started()) {
              joined.started = response.started();
              ++started;
            }
            if (response.has_finished()) joined.finished = response.finished();
            if (!response.has_token()) return;
            joined.tokens.push_back(response.token());
            if (joined.tokens.size() % 20 == 5) proxy.Cut();
          });
  EXPECT_EQ(started, 1);
  v1::GenerateRequest seeded = Turn("");
  seeded.mutable_sampling()->set_seed(joined.started.seed());
  ExpectRest(joined, Ask(second_.client(), seeded), 0);
}

}  // namespace
}  // namespace txl::testing
