#include "tests/end_to_end/turns.h"

#include <gtest/gtest.h>

#include <random>

#include "absl/time/clock.h"
#include "client/call_error.h"

namespace txl::testing {

TurnOutput RunTurn(Client& client, const v1::GenerateRequest& request,
                   const CallOptions& options,
                   const std::function<void(int64_t)>& on_token) {
  TurnOutput output;
  bool finished = false;
  output.status = client.Generate(
      request, options, [&](const v1::GenerateResponse& response) {
        EXPECT_FALSE(finished) << "an event after Finished";
        if (response.has_started()) output.started = response.started();
        if (response.has_finished()) {
          output.finished = response.finished();
          finished = true;
          return;
        }
        if (response.has_token()) {
          EXPECT_EQ(response.token().index(),
                    static_cast<int32_t>(output.ids.size()));
          output.ids.push_back(response.token().token_id());
          output.logprobs.push_back(response.token().logprob());
        }
        if (on_token) on_token(static_cast<int64_t>(output.ids.size()));
      });
  EXPECT_EQ(output.status.ok(), finished) << output.status;
  if (finished) {
    const auto count = static_cast<int64_t>(output.ids.size());
    EXPECT_EQ(output.finished.usage().generated_tokens(), count);
    EXPECT_EQ(output.finished.position(),
              output.started.position() + output.started.prompt_token_count() +
                  count);
  }
  return output;
}

v1::GenerateRequest Greedy(const std::string& session_id,
                           absl::Span<const uint32_t> prompt,
                           int32_t max_tokens) {
  v1::GenerateRequest request;
  request.set_session_id(session_id);
  if (!prompt.empty()) {
    request.mutable_tokens()->mutable_ids()->Assign(prompt.begin(),
                                                    prompt.end());
  }
  request.mutable_sampling()->set_temperature(0);
  request.mutable_stop()->set_max_tokens(max_tokens);
  request.mutable_stop()->set_ignore_end_token(true);
  return request;
}

std::vector<uint32_t> RandomIds(uint64_t seed, int64_t count,
                                int64_t vocabulary) {
  std::mt19937_64 random(seed);
  std::vector<uint32_t> ids(count);
  for (uint32_t& id : ids) {
    id = static_cast<uint32_t>(random() % static_cast<uint64_t>(vocabulary));
  }
  return ids;
}

void CreateSession(Client& client, const std::string& session_id) {
  v1::CreateSessionRequest request;
  request.set_session_id(session_id);
  const auto response = client.CreateSession(request);
  EXPECT_TRUE(response.ok()) << response.status();
}

absl::StatusOr<v1::AppendTokensResponse> Append(Client& client,
                                                const std::string& session_id,
                                                absl::Span<const uint32_t> ids,
                                                bool return_logprobs) {
  v1::AppendTokensRequest request;
  request.set_session_id(session_id);
  request.mutable_tokens()->mutable_ids()->Assign(ids.begin(), ids.end());
  request.set_return_logprobs(return_logprobs);
  return client.AppendTokens(request);
}

void ExpectError(const absl::Status& status, absl::StatusCode code,
                 absl::string_view reason) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_EQ(GetCallError(status).reason, reason) << status;
}

bool WaitUntil(const std::function<bool()>& done) {
  const absl::Time give_up = absl::Now() + absl::Seconds(30);
  while (!done()) {
    if (absl::Now() > give_up) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

v1::GetSessionResponse IdleSession(Client& client,
                                   const std::string& session_id) {
  v1::GetSessionRequest request;
  request.set_session_id(session_id);
  request.set_include_tokens(true);
  absl::StatusOr<v1::GetSessionResponse> response;
  EXPECT_TRUE(WaitUntil([&] {
    response = client.GetSession(request);
    return !response.ok() ||
           response->session().state() == v1::SESSION_STATE_IDLE;
  }));
  EXPECT_TRUE(response.ok()) << response.status();
  return response.ok() ? *response : v1::GetSessionResponse();
}

}  // namespace txl::testing
