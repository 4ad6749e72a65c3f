#include "server/http/completion_json.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "model/text/utf8.h"
#include "server/http/http_options.h"

namespace txl {
namespace {

using Json = nlohmann::json;

// As much of the model's fingerprint as tells models apart.
constexpr size_t kFingerprintChars = 12;

// Where two tokens have one name, the likelier one has it.
void Put(const std::string& name, double logprob, Json* top) {
  const auto found = top->find(name);
  if (found == top->end() || found->get<double>() < logprob) {
    (*top)[name] = logprob;
  }
}

template <typename Token>
TokenPlace Place(const Token& token, int64_t offset) {
  TokenPlace place;
  place.id = token.token_id();
  place.text_offset = offset;
  for (const v1::TokenLogprob& one : token.top_logprobs()) {
    place.top.emplace_back(one.token_id(), one.logprob());
  }
  return place;
}

// The chosen token is always among its alternatives.
Json TopJson(const TokenPlace& place, const TokenNames& names) {
  if (!place.logprob.has_value()) return Json();
  Json top = Json::object();
  for (const auto& [id, logprob] : place.top) {
    Put(names.Of(id), Finite(logprob), &top);
  }
  Put(names.Of(place.id), Finite(*place.logprob), &top);
  return top;
}

}  // namespace

double Finite(float logprob) {
  return std::isfinite(logprob) ? static_cast<double>(logprob) : kNeverLogprob;
}

std::string TokenNames::Of(uint32_t id) const {
  if (as_ids_ || vocabulary_ == nullptr) return absl::StrCat("token_id:", id);
  return ReplaceInvalidUtf8(vocabulary_->TokenBytes(static_cast<int32_t>(id)));
}

Json TokenNames::Bytes(uint32_t id) const {
  if (vocabulary_ == nullptr) return Json();
  const std::string bytes = vocabulary_->TokenBytes(static_cast<int32_t>(id));
  return std::vector<uint8_t>(bytes.begin(), bytes.end());
}

TokenPlace PlaceOf(const v1::Token& token, int64_t offset) {
  TokenPlace place = Place(token, offset);
  place.logprob = token.logprob();
  return place;
}

TokenPlace PlaceOf(const v1::ScoredToken& token, int64_t offset) {
  TokenPlace place = Place(token, offset);
  if (token.has_logprob()) place.logprob = token.logprob();
  return place;
}

Json LogprobLists(const std::vector<TokenPlace>& places,
                  const TokenNames& names) {
  Json tokens = Json::array();
  Json logprobs = Json::array();
  Json top = Json::array();
  Json offsets = Json::array();
  for (const TokenPlace& place : places) {
    tokens.push_back(names.Of(place.id));
    logprobs.push_back(place.logprob.has_value() ? Json(Finite(*place.logprob))
                                                 : Json());
    top.push_back(TopJson(place, names));
    offsets.push_back(place.text_offset);
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(top)},
          {"text_offset", std::move(offsets)}};
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
          {"object", head.object},
          {"created", head.created},
          {"model", head.model},
          {"system_fingerprint", head.fingerprint.substr(0, kFingerprintChars)},
          {"choices", std::move(choices)}};
}

}  // namespace txl
