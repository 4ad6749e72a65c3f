#pragma once

// The body of POST /v1/completions -> turns that may be asked for. Pure: what
// needs no model is checked here, everything about a turn by the turn itself
// (server/api). Errors name the field as the body spells it.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/api/model_facts.h"
#include "server/http/http_message.h"
#include "txl/v1/generation_service.pb.h"

namespace txl {

struct CompletionRequest {
  // One for each prompt: all of its turn but the seed of its samples.
  std::vector<v1::GenerateRequest> turns;
  int64_t n = 1;                 // choices returned for a prompt
  int64_t best_of = 1;           // choices drawn for a prompt, >= n
  std::optional<uint64_t> seed;  // of the first choice, the next ones count on
  bool echo = false;
  bool generates = true;            // false: the prompt alone, max_tokens 0
  std::optional<int64_t> logprobs;  // alternatives of a token; absent: none
  bool tokens_as_ids = false;       // "token_id:7" where a text would stand
  bool return_token_ids = false;
  bool stream = false;
  bool include_usage = false;        // a last chunk with the usage of all
  bool continuous_usage = false;     // every chunk says its choice's
  bool event_ids = false;            // `id:` lines
  int64_t skip_events = 0;           // that the client has (Last-Event-ID)
  std::vector<std::string> ignored;  // fields that nothing here reads
};

absl::StatusOr<CompletionRequest> ReadCompletion(const nlohmann::json& body,
                                                 const HttpRequest& http,
                                                 const ModelFacts& facts);

// The session that body and headers (x-txl-session, X-Session-ID) name, ""
// where none does. FIELD_INVALID where two differ.
absl::StatusOr<std::string> NamedSession(
    const std::optional<std::string>& of_body, const HttpRequest& http);

}  // namespace txl
