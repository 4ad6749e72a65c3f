#include "server/http/chat_request.h"

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/error.h"

namespace txl {
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
      return MessageError(index, "has a part that is no text");
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
    if (!(*messages)[i].is_object()) return MessageError(i, "is no object");
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
  TXL_ASSIGN_OR_RETURN(const std::string prompt, ReadMessages(fields, format));
  if (!prompt.empty()) turn.set_text(prompt);
  TXL_RETURN_IF_ERROR(ReadCommonFields(fields, http, facts, &request, &common));
  TXL_RETURN_IF_ERROR(ReadLogprobs(fields, &request, &common));
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
