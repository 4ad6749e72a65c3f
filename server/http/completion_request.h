#pragma once

// The body of POST /v1/completions -> turns that may be asked for. Pure.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/api/model_facts.h"
#include "server/http/http_message.h"
#include "server/http/json_in.h"
#include "txl/v1/generation_service.pb.h"

namespace txl {

// What a completion asks for, and those fields of its body that a text's and a
// chat's have alike. Pure: what needs no model is checked here, everything
// about a turn by the turn itself (server/api). Errors name the field as the
// body spells it.

struct CompletionRequest {
  // One for each prompt: all of its turn but the seed of its samples.
  std::vector<v1::GenerateRequest> turns;
  bool chat = false;    // answered as a chat's
  int64_t n = 1;        // choices returned for a prompt
  int64_t best_of = 1;  // choices drawn for a prompt, >= n
  std::optional<uint64_t>
      seed;  // of a prompt's first choice, the next count on
  bool echo = false;
  bool generates = true;            // false: the prompt alone, max_tokens 0
  std::optional<int64_t> logprobs;  // alternatives of a token; absent: none
  // Fields of the body that these came from.
  std::string logprobs_name = "logprobs";
  std::string max_tokens_name = "max_tokens";
  bool tokens_as_ids = false;  // "token_id:7" where a text would stand
  bool return_token_ids = false;
  bool stream = false;
  bool include_usage = false;        // a last chunk with the usage of all
  bool continuous_usage = false;     // every chunk says its choice's
  bool event_ids = false;            // `id:` lines
  int64_t skip_events = 0;           // that the client has (Last-Event-ID)
  std::vector<std::string> ignored;  // fields that nothing here reads
};

// Reads them into a request whose turns have their prompts already, and what
// all turns have in common into `common`.
absl::Status ReadCommonFields(BodyFields& fields, const HttpRequest& http,
                              const ModelFacts& facts,
                              CompletionRequest* request,
                              v1::GenerateRequest* common);

// There is no such model: NotFound, model_not_found.
absl::Status ModelUnknown(const std::string& asked, const std::string& served);

// The error of the turn of prompt number `prompt`, with the field as the body
// calls it.
absl::Status AsOfBody(const absl::Status& status,
                      const CompletionRequest& request, int64_t prompt);

// Sets what a field of that name says of tokens to generate at most.
absl::Status SetMaxTokens(const char* name, int64_t tokens,
                          CompletionRequest* request,
                          v1::GenerateRequest* common);
// Reads what stands beside the alternatives to a token, which have been read;
// without them it reports none besides.
absl::Status ReadLogprobIds(BodyFields& fields, CompletionRequest* request,
                            v1::GenerateRequest* common);
// Sets what a field of that name says of alternatives to a token.
absl::Status SetLogprobs(const char* name, int64_t alternatives,
                         CompletionRequest* request,
                         v1::GenerateRequest* common);

absl::StatusOr<CompletionRequest> ReadCompletion(const nlohmann::json& body,
                                                 const HttpRequest& http,
                                                 const ModelFacts& facts);

// The body of POST /v1/chat/completions -> a turn that may be asked for: the
// messages become one prompt as the model's chat format has it. Pure.

// NO_CHAT_FORMAT where the model has none.
absl::StatusOr<CompletionRequest> ReadChat(const nlohmann::json& body,
                                           const HttpRequest& http,
                                           const ModelFacts& facts);

}  // namespace txl
