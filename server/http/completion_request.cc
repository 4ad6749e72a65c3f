#include "server/http/completion_request.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/error.h"
#include "server/http/http_options.h"

namespace txl {
namespace {

using Json = nlohmann::json;

constexpr char kWrong[] = "must be a text, token ids or a list of either";

// A text or ids; empty ones are no prompt.
absl::Status ReadPrompt(const Json& prompt, v1::GenerateRequest* turn) {
  if (prompt == "" || prompt == Json::array()) return absl::OkStatus();
  if (prompt.is_string()) {
    turn->set_text(prompt.get<std::string>());
    return absl::OkStatus();
  }
  TXL_ASSIGN_OR_RETURN(const auto ids, ReadIdList(prompt, "prompt"));
  turn->mutable_tokens()->mutable_ids()->Add(ids.begin(), ids.end());
  return absl::OkStatus();
}

// A text, ids, or a list of either.
absl::StatusOr<std::vector<v1::GenerateRequest>> ReadPrompts(
    const Json* prompt) {
  std::vector<v1::GenerateRequest> turns(1);
  if (prompt == nullptr) return turns;
  if (!prompt->is_string() && (!prompt->is_array() || prompt->empty())) {
    return FieldError("prompt", kWrong);
  }
  if (prompt->is_string() || prompt->front().is_number()) {
    TXL_RETURN_IF_ERROR(ReadPrompt(*prompt, &turns[0]));
    return turns;
  }
  // Each has a choice: more are refused before room is taken for them.
  if (prompt->size() > static_cast<size_t>(kMaxChoices)) {
    return OverLimitError("prompt",
                          absl::StrCat("has over ", kMaxChoices, " prompts"));
  }
  turns.clear();
  for (const Json& one : *prompt) {
    if (!one.is_string() && !one.is_array())
      return FieldError("prompt", kWrong);
    TXL_RETURN_IF_ERROR(ReadPrompt(one, &turns.emplace_back()));
  }
  return turns;
}

absl::Status ReadEcho(BodyFields& fields, CompletionRequest* request) {
  TXL_ASSIGN_OR_RETURN(const auto echo, fields.Bool("echo"));
  request->echo = echo.value_or(false);
  const v1::GenerateRequest& turn = request->turns[0];
  const bool named = !turn.session_id().empty() && !turn.request_id().empty();
  // The prompt would be scored behind itself.
  if (request->echo && request->logprobs.has_value() &&
      (named || turn.has_received())) {
    return FieldError("echo",
                      "with logprobs cannot be sent again: leave out "
                      "request_id and received");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CompletionRequest> ReadCompletion(const Json& body,
                                                 const HttpRequest& http,
                                                 const ModelFacts& facts) {
  BodyFields fields(body);
  CompletionRequest request;
  v1::GenerateRequest common;
  TXL_ASSIGN_OR_RETURN(request.turns, ReadPrompts(fields.Find("prompt")));
  TXL_RETURN_IF_ERROR(ReadCommonFields(fields, http, facts, &request, &common));
  TXL_ASSIGN_OR_RETURN(const auto logprobs, fields.Integer("logprobs"));
  if (logprobs.has_value()) {
    TXL_RETURN_IF_ERROR(SetLogprobs("logprobs", *logprobs, &request, &common));
  }
  TXL_RETURN_IF_ERROR(ReadEcho(fields, &request));
  TXL_ASSIGN_OR_RETURN(const auto max_tokens, fields.Integer("max_tokens"));
  const int64_t most = max_tokens.value_or(kCompletionMaxTokens);
  request.generates = most != 0 || !request.echo;
  if (request.generates) {
    TXL_RETURN_IF_ERROR(SetMaxTokens("max_tokens", most, &request, &common));
  }
  for (v1::GenerateRequest& turn : request.turns) turn.MergeFrom(common);
  TXL_RETURN_IF_ERROR(fields.RefuseMisspelt());
  request.ignored = fields.Unknown();
  return request;
}

}  // namespace txl
