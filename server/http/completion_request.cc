#include "server/http/completion_request.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/text/utf8.h"
#include "server/base/error.h"
#include "server/http/http_call.h"
#include "server/http/http_error.h"
#include "server/http/http_options.h"
#include "server/http/message_json.h"

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
  TXL_RETURN_IF_ERROR(ReadLogprobIds(fields, &request, &common));
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

namespace {

using Json = nlohmann::json;

absl::Status CheckModel(BodyFields& fields, const ModelFacts& facts) {
  TXL_ASSIGN_OR_RETURN(const auto model, fields.String("model"));
  if (!model.has_value() || model->empty() || *model == facts.name) {
    return absl::OkStatus();
  }
  return ModelUnknown(*model, facts.name);
}

// What other servers do and this one does not.
absl::Status CheckUnserved(BodyFields& fields) {
  TXL_ASSIGN_OR_RETURN(const auto suffix, fields.String("suffix"));
  if (!suffix.value_or("").empty()) {
    return FieldError("suffix", "is not supported: the model continues text");
  }
  for (const char* name : {"tools", "functions", "tool_choice"}) {
    const Json* value = fields.Find(name);
    if (value != nullptr && !value->empty() && *value != "none") {
      return FieldError(name, "is not supported");
    }
  }
  const Json* format = fields.Find("response_format");
  if (format != nullptr &&
      !(format->is_object() && format->value("type", Json()) == "text")) {
    return FieldError("response_format", "is not supported but for text");
  }
  return absl::OkStatus();
}

absl::Status ReadLogitBias(const Json* bias, v1::SamplingParams* sampling) {
  if (bias == nullptr) return absl::OkStatus();
  if (!bias->is_object()) {
    return FieldError("logit_bias", "must be an object of token ids");
  }
  for (const auto& [key, value] : bias->items()) {
    uint32_t id = 0;
    if (!absl::SimpleAtoi(key, &id) || !value.is_number()) {
      return FieldError("logit_bias", "must map token ids to numbers");
    }
    (*sampling->mutable_logit_bias())[id] = value.get<float>();
  }
  return absl::OkStatus();
}

absl::Status ReadSampling(BodyFields& fields, v1::SamplingParams* sampling) {
  using Set = void (v1::SamplingParams::*)(double);
  constexpr std::pair<const char*, Set> kNumbers[] = {
      {"temperature", &v1::SamplingParams::set_temperature},
      {"top_p", &v1::SamplingParams::set_top_p},
      {"min_p", &v1::SamplingParams::set_min_p},
      {"typical_p", &v1::SamplingParams::set_typical_p},
      {"repetition_penalty", &v1::SamplingParams::set_repetition_penalty},
      {"presence_penalty", &v1::SamplingParams::set_presence_penalty},
      {"frequency_penalty", &v1::SamplingParams::set_frequency_penalty}};
  for (const auto& [name, set] : kNumbers) {
    TXL_ASSIGN_OR_RETURN(const auto number, fields.Number(name));
    if (number.has_value()) (sampling->*set)(*number);
  }
  TXL_ASSIGN_OR_RETURN(const auto top_k, fields.Integer("top_k"));
  // Elsewhere -1 is what 0 is here: all tokens.
  if (top_k.has_value()) sampling->set_top_k(*top_k == -1 ? 0 : *top_k);
  for (const auto& [name, set] :
       {std::pair("penalty_window", &v1::SamplingParams::set_penalty_window),
        std::pair("min_tokens", &v1::SamplingParams::set_min_tokens)}) {
    TXL_ASSIGN_OR_RETURN(const auto number, fields.Integer(name));
    if (!number.has_value()) continue;
    if (*number != static_cast<int32_t>(*number)) {
      return FieldError(name, "is out of range");
    }
    (sampling->*set)(static_cast<int32_t>(*number));
  }
  TXL_RETURN_IF_ERROR(ReadNamed(fields, "allowed_token_ids", sampling));
  TXL_RETURN_IF_ERROR(ReadNamed(fields, "follow_kinds", sampling));
  return ReadLogitBias(fields.Find("logit_bias"), sampling);
}

absl::Status ReadTokenCount(const Json* count, v1::StopConditions* stop) {
  if (count == nullptr) return absl::OkStatus();
  if (!count->is_object()) {
    return FieldError("stop_token_count", "must be an object of id and count");
  }
  BodyFields fields(*count);
  absl::Status read = ReadNamed(fields, "id", stop->mutable_token_count());
  read.Update(ReadNamed(fields, "count", stop->mutable_token_count()));
  read.Update(fields.RefuseUnknown());
  return InObject(read, "stop.token_count");
}

absl::Status ReadStop(BodyFields& fields, v1::StopConditions* stop) {
  TXL_ASSIGN_OR_RETURN(const auto texts, fields.Strings("stop"));
  for (const std::string& text : texts) stop->add_stop_texts(text);
  TXL_ASSIGN_OR_RETURN(const auto ids, fields.Ids("stop_token_ids"));
  if (ids.has_value()) {
    stop->mutable_stop_token_ids()->Add(ids->begin(), ids->end());
  }
  TXL_RETURN_IF_ERROR(ReadTokenCount(fields.Find("stop_token_count"), stop));
  TXL_ASSIGN_OR_RETURN(const auto ignore_eos, fields.Bool("ignore_eos"));
  if (ignore_eos.has_value()) stop->set_ignore_end_token(*ignore_eos);
  TXL_ASSIGN_OR_RETURN(const auto include,
                       fields.Bool("include_stop_str_in_output"));
  if (include.has_value()) stop->set_include_stop_text(*include);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<uint64_t>> ReadSeed(BodyFields& fields) {
  const Json* seed = fields.Find("seed");
  if (seed == nullptr) return std::optional<uint64_t>();
  if (seed->is_number_unsigned()) {
    return std::optional<uint64_t>(seed->get<uint64_t>());
  }
  TXL_ASSIGN_OR_RETURN(const auto number, fields.Integer("seed"));
  return std::optional<uint64_t>(static_cast<uint64_t>(*number));
}

absl::Status ReadStream(BodyFields& fields, const HttpRequest& http,
                        CompletionRequest* request) {
  TXL_ASSIGN_OR_RETURN(const auto stream, fields.Bool("stream"));
  request->stream = stream.value_or(false);
  if (const Json* options = fields.Find("stream_options")) {
    if (!options->is_object()) {
      return FieldError("stream_options", "must be an object");
    }
    BodyFields of_stream(*options);
    TXL_ASSIGN_OR_RETURN(const auto usage, of_stream.Bool("include_usage"));
    TXL_ASSIGN_OR_RETURN(const auto each,
                         of_stream.Bool("continuous_usage_stats"));
    TXL_ASSIGN_OR_RETURN(const auto ids, of_stream.Bool("event_ids"));
    request->include_usage = usage.value_or(false);
    request->continuous_usage = each.value_or(false);
    request->event_ids = ids.value_or(false);
    TXL_RETURN_IF_ERROR(of_stream.RefuseMisspelt());
  }
  const std::string& last = http.header("last-event-id");
  if (last.empty()) return absl::OkStatus();
  if (!absl::SimpleAtoi(last, &request->skip_events) ||
      request->skip_events < 0) {
    return FieldError("Last-Event-ID", "must be the number of an event");
  }
  request->event_ids = true;
  return absl::OkStatus();
}

absl::Status ReadChoices(BodyFields& fields, CompletionRequest* request) {
  TXL_ASSIGN_OR_RETURN(const auto n, fields.Integer("n"));
  TXL_ASSIGN_OR_RETURN(const auto best_of, fields.Integer("best_of"));
  request->n = n.value_or(1);
  request->best_of = best_of.value_or(request->n);
  if (request->n < 1) return FieldError("n", "must be at least 1");
  if (request->best_of < request->n) {
    return FieldError("best_of", "must be at least n");
  }
  if (request->best_of > kMaxChoices) {
    return OverLimitError(best_of.has_value() ? "best_of" : "n",
                          absl::StrCat("is over ", kMaxChoices));
  }
  const auto prompts = static_cast<int64_t>(request->turns.size());
  if (prompts * request->best_of > kMaxChoices) {
    return OverLimitError(
        "prompt", absl::StrCat("prompts times n are over ", kMaxChoices));
  }
  if (request->stream && request->best_of > request->n) {
    return FieldError("best_of", "cannot be streamed");
  }
  return absl::OkStatus();
}

// Tokens that a client has of a turn that broke off, and their seed.
absl::Status ReadReceived(BodyFields& fields, const CompletionRequest& request,
                          v1::GenerateRequest* turn) {
  const Json* received = fields.Find("received");
  if (received == nullptr) return absl::OkStatus();
  if (!received->is_object()) {
    return FieldError("received", "must be an object of seed and token_ids");
  }
  BodyFields of_received(*received);
  TXL_ASSIGN_OR_RETURN(const auto seed, ReadSeed(of_received));
  if (!seed.has_value()) return FieldError("received.seed", "must be set");
  const auto ids = of_received.Ids("token_ids");
  if (!ids.ok()) return InObject(ids.status(), "received");
  TXL_RETURN_IF_ERROR(of_received.RefuseUnknown());
  turn->mutable_received()->set_seed(*seed);
  if (ids->has_value()) {
    turn->mutable_received()->mutable_token_ids()->Add((*ids)->begin(),
                                                       (*ids)->end());
  }
  if (request.turns.size() > 1 || request.best_of > 1) {
    return FieldError("received", "is of one prompt and one choice");
  }
  if (request.skip_events > 0) {
    return FieldError("received", "says it already: leave out Last-Event-ID");
  }
  return absl::OkStatus();
}

absl::Status ReadSession(BodyFields& fields, const HttpRequest& http,
                         CompletionRequest* request) {
  TXL_ASSIGN_OR_RETURN(const auto of_body, fields.String("session_id"));
  TXL_ASSIGN_OR_RETURN(const std::string session, NamedSession(of_body, http));
  TXL_ASSIGN_OR_RETURN(const auto request_id, fields.String("request_id"));
  TXL_ASSIGN_OR_RETURN(const auto position,
                       fields.Integer("expected_position"));
  v1::GenerateRequest& turn = request->turns[0];
  turn.set_session_id(session);
  turn.set_request_id(request_id.value_or(""));
  if (position.has_value()) turn.set_expected_position(*position);
  TXL_RETURN_IF_ERROR(ReadReceived(fields, *request, &turn));
  if (session.empty()) return absl::OkStatus();
  if (request->turns.size() > 1) {
    return FieldError("prompt", "a session takes one prompt");
  }
  if (request->best_of > 1) {
    return FieldError(request->n > 1 ? "n" : "best_of",
                      "a session goes on in one way: fork it first");
  }
  const std::string& retries = http.header("x-stainless-retry-count");
  if (retries.empty() || retries == "0" || !turn.request_id().empty()) {
    return absl::OkStatus();
  }
  // OpenAI's client repeats by itself, whatever the first one did.
  ErrorDetails details;
  details.reason = "BLIND_REPEAT";
  details.field = "request_id";
  return MakeError(absl::StatusCode::kAborted,
                   "a turn of a session that is sent again needs its "
                   "request_id: it may have been done",
                   details);
}

// What is sent again is the same turn only where it has a name.
absl::Status CheckResume(const CompletionRequest& request) {
  const v1::GenerateRequest& turn = request.turns[0];
  const bool named = !turn.session_id().empty() && !turn.request_id().empty();
  if (request.skip_events > 0 && !named) {
    return FieldError("request_id",
                      "Last-Event-ID needs a session and the turn's name");
  }
  return absl::OkStatus();
}

absl::Status ReadPriority(BodyFields& fields, v1::GenerateRequest* common) {
  TXL_ASSIGN_OR_RETURN(const auto priority, fields.Integer("priority"));
  if (!priority.has_value()) return absl::OkStatus();
  if (*priority != static_cast<int32_t>(*priority)) {
    return FieldError("priority", "is out of range");
  }
  common->set_priority(static_cast<int32_t>(*priority));
  return absl::OkStatus();
}

}  // namespace

absl::Status ModelUnknown(const std::string& asked, const std::string& served) {
  ErrorDetails details;
  details.reason = "model_not_found";
  details.field = "model";
  return MakeError(absl::StatusCode::kNotFound,
                   absl::StrCat("there is no model \"", CutUtf8(asked, 100),
                                "\"; this server has \"", served, "\""),
                   details);
}

absl::Status AsOfBody(const absl::Status& status,
                      const CompletionRequest& request, int64_t prompt) {
  ErrorDetails details = GetErrorDetails(status);
  if (details.field == "stop.max_tokens") {
    details.field = request.max_tokens_name;
  } else if (details.field == "output.logprobs") {
    details.field = request.logprobs_name;
  } else {
    const std::string name = request.chat ? "messages"
                             : request.turns.size() > 1
                                 ? absl::StrCat("prompt[", prompt, "]")
                                 : "prompt";
    if (details.field == "input") return FieldError(name, "must not be empty");
    return AsOfInput(status, name);
  }
  return MakeError(status.code(), status.message(), details);
}

absl::Status SetMaxTokens(const char* name, int64_t tokens,
                          CompletionRequest* request,
                          v1::GenerateRequest* common) {
  if (tokens != static_cast<int32_t>(tokens)) {
    return FieldError(name, "is out of range");
  }
  request->max_tokens_name = name;
  common->mutable_stop()->set_max_tokens(static_cast<int32_t>(tokens));
  return absl::OkStatus();
}

absl::Status SetLogprobs(const char* name, int64_t alternatives,
                         CompletionRequest* request,
                         v1::GenerateRequest* common) {
  if (alternatives != static_cast<uint32_t>(alternatives)) {
    return FieldError(name, "is out of range");
  }
  request->logprobs = alternatives;
  request->logprobs_name = name;
  common->mutable_output()->set_logprobs(static_cast<uint32_t>(alternatives));
  return absl::OkStatus();
}

absl::Status ReadLogprobIds(BodyFields& fields, CompletionRequest* request,
                            v1::GenerateRequest* common) {
  v1::OutputOptions* output = common->mutable_output();
  TXL_RETURN_IF_ERROR(ReadNamed(fields, "logprob_token_ids", output));
  const bool alone =
      !output->logprob_token_ids().empty() && !request->logprobs.has_value();
  return alone ? SetLogprobs("logprob_token_ids", 0, request, common)
               : absl::OkStatus();
}

absl::Status ReadCommonFields(BodyFields& fields, const HttpRequest& http,
                              const ModelFacts& facts,
                              CompletionRequest* request,
                              v1::GenerateRequest* common) {
  TXL_RETURN_IF_ERROR(CheckModel(fields, facts));
  TXL_RETURN_IF_ERROR(CheckUnserved(fields));
  TXL_RETURN_IF_ERROR(ReadStream(fields, http, request));
  TXL_RETURN_IF_ERROR(ReadChoices(fields, request));
  TXL_RETURN_IF_ERROR(ReadSession(fields, http, request));
  TXL_RETURN_IF_ERROR(CheckResume(*request));
  TXL_ASSIGN_OR_RETURN(request->seed, ReadSeed(fields));
  TXL_RETURN_IF_ERROR(ReadNamed(fields, "unknown", common));
  TXL_RETURN_IF_ERROR(ReadPriority(fields, common));
  TXL_RETURN_IF_ERROR(ReadSampling(fields, common->mutable_sampling()));
  TXL_RETURN_IF_ERROR(ReadStop(fields, common->mutable_stop()));
  TXL_ASSIGN_OR_RETURN(const auto as_ids,
                       fields.Bool("return_tokens_as_token_ids"));
  request->tokens_as_ids = as_ids.value_or(false);
  TXL_ASSIGN_OR_RETURN(const auto ids, fields.Bool("return_token_ids"));
  request->return_token_ids = ids.value_or(false);
  fields.Find("user");  // OpenAI's, for its own statistics
  return absl::OkStatus();
}

namespace {

using Json = nlohmann::json;

absl::Status NoChatFormat() {
  ErrorDetails details;
  details.reason = "NO_CHAT_FORMAT";
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "the model's generation.json has no chat format; "
                   "/v1/completions continues text",
                   details);
}

absl::Status MessageError(size_t index, const char* what) {
  return FieldError("messages", absl::StrCat("message ", index, " ", what));
}

// What stands around a message of the role; null: there is no such role.
const ChatRole* RoleOf(const std::string& name, const ChatFormat& format) {
  if (name == "user") return &format.user;
  if (name == "assistant") return &format.assistant;
  const bool system = name == "system" || name == "developer";
  return system && format.system.has_value() ? &*format.system : nullptr;
}

// A text, or a list of parts that are texts.
absl::StatusOr<std::string> ReadContent(BodyFields& message, size_t index) {
  const Json* content = message.Find("content");
  if (content != nullptr && content->is_string()) {
    return content->get<std::string>();
  }
  if (content == nullptr || !content->is_array()) {
    return MessageError(index, "needs a content: a text or a list of parts");
  }
  std::string text;
  for (const Json& part : *content) {
    if (!part.is_object() || part.value("type", Json()) != "text" ||
        !part.value("text", Json()).is_string()) {
      return MessageError(index, "has a part that is not text");
    }
    text += part["text"].get<std::string>();
  }
  return text;
}

absl::StatusOr<std::string> ReadMessages(BodyFields& fields,
                                         const ChatFormat& format) {
  const Json* messages = fields.Find("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty()) {
    return FieldError("messages", "must be a list of at least one message");
  }
  std::string prompt;
  for (size_t i = 0; i < messages->size(); ++i) {
    if (!(*messages)[i].is_object()) return MessageError(i, "is not an object");
    BodyFields message((*messages)[i]);
    TXL_ASSIGN_OR_RETURN(const auto name, message.String("role"));
    const ChatRole* role = RoleOf(name.value_or(""), format);
    if (role == nullptr) {
      return MessageError(i, format.system.has_value()
                                 ? "has no role: system, user or assistant"
                                 : "has no role: user or assistant");
    }
    TXL_ASSIGN_OR_RETURN(const std::string content, ReadContent(message, i));
    TXL_RETURN_IF_ERROR(message.RefuseMisspelt());
    absl::StrAppend(&prompt, role->before, content, role->after);
  }
  return prompt + format.answer;
}

// A request that says nothing gets what a turn gets: an answer of 16 tokens, as
// of a completion, would be cut.
absl::Status ReadMaxTokens(BodyFields& fields, CompletionRequest* request,
                           v1::GenerateRequest* common) {
  for (const char* name : {"max_completion_tokens", "max_tokens"}) {
    TXL_ASSIGN_OR_RETURN(const auto tokens, fields.Integer(name));
    if (!tokens.has_value() || common->stop().has_max_tokens()) continue;
    TXL_RETURN_IF_ERROR(SetMaxTokens(name, *tokens, request, common));
  }
  return absl::OkStatus();
}

absl::Status ReadLogprobs(BodyFields& fields, CompletionRequest* request,
                          v1::GenerateRequest* common) {
  TXL_ASSIGN_OR_RETURN(const auto logprobs, fields.Bool("logprobs"));
  TXL_ASSIGN_OR_RETURN(const auto top, fields.Integer("top_logprobs"));
  if (!logprobs.value_or(false)) {
    if (top.value_or(0) == 0) return absl::OkStatus();
    return FieldError("top_logprobs", "needs logprobs to be true");
  }
  return SetLogprobs("top_logprobs", top.value_or(0), request, common);
}

}  // namespace

absl::StatusOr<CompletionRequest> ReadChat(const Json& body,
                                           const HttpRequest& http,
                                           const ModelFacts& facts) {
  if (!facts.generation.chat.has_value()) return NoChatFormat();
  const ChatFormat& format = *facts.generation.chat;
  BodyFields fields(body);
  CompletionRequest request;
  request.chat = true;
  v1::GenerateRequest common;
  v1::GenerateRequest& turn = request.turns.emplace_back();
  TXL_ASSIGN_OR_RETURN(std::string prompt, ReadMessages(fields, format));
  if (!prompt.empty()) turn.set_text(std::move(prompt));
  TXL_RETURN_IF_ERROR(ReadCommonFields(fields, http, facts, &request, &common));
  TXL_RETURN_IF_ERROR(ReadLogprobs(fields, &request, &common));
  TXL_RETURN_IF_ERROR(ReadLogprobIds(fields, &request, &common));
  TXL_RETURN_IF_ERROR(ReadMaxTokens(fields, &request, &common));
  for (const std::string& text : format.stop_texts) {
    common.mutable_stop()->add_stop_texts(text);
  }
  turn.MergeFrom(common);
  TXL_RETURN_IF_ERROR(fields.RefuseMisspelt());
  request.ignored = fields.Unknown();
  return request;
}

}  // namespace txl
