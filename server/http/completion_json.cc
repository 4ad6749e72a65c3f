#include "server/http/completion_json.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "model/text/utf8.h"
#include "server/http/http_options.h"

namespace txl {
namespace {

using Json = nlohmann::json;

// As much of the model's fingerprint as tells models apart.
constexpr size_t kFingerprintChars = 12;

double Finite(float logprob) {
  return std::isfinite(logprob) ? static_cast<double>(logprob) : kNeverLogprob;
}

// Where two tokens have one name, the likelier one has it.
void Put(const std::string& name, double logprob, Json* top) {
  const auto found = top->find(name);
  if (found == top->end() || found->get<double>() < logprob) {
    (*top)[name] = logprob;
  }
}

template <typename Token>
void Add(const Token& token, std::optional<float> logprob, int64_t offset,
         const TokenNames& names, LogprobLists* lists) {
  const std::string name = names.Of(token.token_id());
  lists->tokens.push_back(name);
  lists->token_logprobs.push_back(logprob);
  lists->text_offset.push_back(offset);
  if (!logprob.has_value()) return lists->top_logprobs.push_back(Json());
  Json top = Json::object();
  for (const v1::TokenLogprob& one : token.top_logprobs()) {
    Put(names.Of(one.token_id()), Finite(one.logprob()), &top);
  }
  Put(name, Finite(*logprob), &top);
  lists->top_logprobs.push_back(std::move(top));
}

}  // namespace

std::string TokenNames::Of(uint32_t id) const {
  if (vocabulary_ == nullptr) return absl::StrCat("token_id:", id);
  return ReplaceInvalidUtf8(vocabulary_->TokenBytes(static_cast<int32_t>(id)));
}

void AddLogprob(const v1::Token& token, int64_t offset, const TokenNames& names,
                LogprobLists* lists) {
  Add(token, token.logprob(), offset, names, lists);
}

void AddLogprob(const v1::ScoredToken& token, int64_t offset,
                const TokenNames& names, LogprobLists* lists) {
  Add(token,
      token.has_logprob() ? std::optional<float>(token.logprob())
                          : std::nullopt,
      offset, names, lists);
}

Json ToJson(const LogprobLists& lists) {
  Json logprobs = Json::array();
  for (const std::optional<float> logprob : lists.token_logprobs) {
    logprobs.push_back(logprob.has_value() ? Json(Finite(*logprob)) : Json());
  }
  return {{"tokens", lists.tokens},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", lists.top_logprobs},
          {"text_offset", lists.text_offset}};
}

int64_t CodePoints(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char byte) { return (byte & 0xC0) != 0x80; });
}

Json FinishJson(v1::FinishReason reason) {
  switch (reason) {
    case v1::FINISH_REASON_UNSPECIFIED:
      return Json();
    case v1::FINISH_REASON_MAX_TOKENS:
      return "length";
    default:
      return "stop";
  }
}

Json UsageJson(int64_t prompt_tokens, int64_t generated_tokens) {
  return {{"prompt_tokens", prompt_tokens},
          {"completion_tokens", generated_tokens},
          {"total_tokens", prompt_tokens + generated_tokens}};
}

Json CompletionJson(const CompletionHead& head, Json choices) {
  return {{"id", head.id},
          {"object", "text_completion"},
          {"created", head.created},
          {"model", head.model},
          {"system_fingerprint", head.fingerprint.substr(0, kFingerprintChars)},
          {"choices", std::move(choices)}};
}

}  // namespace txl
