#pragma once

// Turns and what comes of them.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/client.h"

namespace txl::testing {

// Of the model kimi-char, whose symbols are ids from 0 on.
inline constexpr uint32_t kVocabulary = 61;

struct TurnOutput {
  absl::Status status;
  v1::Started started;
  v1::Finished finished;
  std::vector<uint32_t> ids;
  std::vector<float> logprobs;
};

// Runs a turn; `on_token` gets the number of tokens so far, first 0 after
// Started. Fails the test when the stream is not as the API says.
TurnOutput RunTurn(Client& client, const v1::GenerateRequest& request,
                   const CallOptions& options = {},
                   const std::function<void(int64_t)>& on_token = nullptr);

// A greedy turn of `max_tokens` tokens that no end token ends.
v1::GenerateRequest Greedy(const std::string& session_id,
                           absl::Span<const uint32_t> prompt,
                           int32_t max_tokens);

// `count` ids below `vocabulary`, a function of the seed.
std::vector<uint32_t> RandomIds(uint64_t seed, int64_t count,
                                int64_t vocabulary);

void CreateSession(Client& client, const std::string& session_id);

absl::StatusOr<v1::AppendTokensResponse> Append(Client& client,
                                                const std::string& session_id,
                                                absl::Span<const uint32_t> ids,
                                                bool return_logprobs = false);

// Fails the test unless the status has this code and reason.
void ExpectError(const absl::Status& status, absl::StatusCode code,
                 absl::string_view reason);

// Looks until `done` holds; false after 30 s.
bool WaitUntil(const std::function<bool()>& done);

// The session when no turn runs on it any more, with its tokens.
v1::GetSessionResponse IdleSession(Client& client,
                                   const std::string& session_id);

}  // namespace txl::testing
