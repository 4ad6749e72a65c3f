#include "server/http/completion_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "model/text/utf8.h"
#include "server/base/digest.h"
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

Json UsageJson(int64_t prompt_tokens, int64_t cached_tokens,
               int64_t generated_tokens) {
  return {{"prompt_tokens", prompt_tokens},
          {"completion_tokens", generated_tokens},
          {"total_tokens", prompt_tokens + generated_tokens},
          {"prompt_tokens_details", {{"cached_tokens", cached_tokens}}}};
}

Json CompletionJson(const CompletionHead& head, Json choices) {
  return {{"id", head.id},
          {"object", head.object},
          {"created", head.created},
          {"model", head.model},
          {"system_fingerprint", head.fingerprint.substr(0, kFingerprintChars)},
          {"choices", std::move(choices)}};
}

namespace {

using Json = nlohmann::json;

Json TokenJson(uint32_t id, float logprob, const TokenNames& names) {
  return {{"token", names.Of(id)},
          {"bytes", names.Bytes(id)},
          {"logprob", Finite(logprob)}};
}

Json LogprobsJson(const CompletionChoice& choice, const ChoiceFormat& format) {
  if (!format.logprobs || choice.places.empty()) return Json();
  Json content = Json::array();
  for (const TokenPlace& place : choice.places) {
    Json token = TokenJson(place.id, place.logprob.value_or(0), format.names);
    Json top = Json::array();
    for (const auto& [id, logprob] : place.top) {
      top.push_back(TokenJson(id, logprob, format.names));
    }
    token["top_logprobs"] = std::move(top);
    content.push_back(std::move(token));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json Choice(int64_t index, const CompletionChoice& choice,
            const ChoiceFormat& format) {
  Json json = {{"index", index},
               {"logprobs", LogprobsJson(choice, format)},
               {"finish_reason", FinishJson(choice.reason)}};
  if (format.token_ids) json["token_ids"] = choice.ids;
  return json;
}

}  // namespace

Json ChatChoiceJson(int64_t index, const CompletionChoice& choice,
                    const ChoiceFormat& format) {
  Json json = Choice(index, choice, format);
  json["message"] = {
      {"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
  return json;
}

Json ChatDeltaJson(int64_t index, const CompletionChoice& part,
                   const ChoiceFormat& format) {
  Json json = Choice(index, part, format);
  Json delta = Json::object();
  if (part.begins) delta["role"] = "assistant";
  if (part.begins || !part.text.empty()) delta["content"] = part.text;
  json["delta"] = std::move(delta);
  return json;
}

CompletionHead NewHead(const CompletionRequest& request,
                       const ModelFacts& facts) {
  return {.id = absl::StrFormat("%s-%016x", request.chat ? "chatcmpl" : "cmpl",
                                RandomBits()),
          .object = !request.chat    ? "text_completion"
                    : request.stream ? "chat.completion.chunk"
                                     : "chat.completion",
          .created = absl::ToUnixSeconds(absl::Now()),
          .model = facts.name,
          .fingerprint = facts.fingerprint};
}

std::optional<uint64_t> FirstSeed(const CompletionRequest& request,
                                  const ModelFacts& facts) {
  if (request.seed.has_value()) return request.seed;
  const v1::GenerateRequest& first = request.turns[0];
  const bool named = !first.session_id().empty() && !first.request_id().empty();
  if (named || first.has_received()) return std::nullopt;
  return facts.generation.sampling.seed.value_or(RandomBits());
}

namespace {

using Json = nlohmann::json;

template <typename List>
void Extend(const List& part, List* whole) {
  whole->insert(whole->end(), part.begin(), part.end());
}

}  // namespace

CompletionChoice PartOf(const v1::Token& token, int64_t offset, bool logprobs) {
  CompletionChoice part;
  part.text = token.text();
  part.ids.push_back(token.token_id());
  part.sum_logprob = token.logprob();
  if (logprobs) part.places.push_back(PlaceOf(token, offset));
  return part;
}

CompletionChoice PartOf(const ScoredTokens& prompt, bool logprobs) {
  CompletionChoice part;
  int64_t offset = 0;
  for (const v1::ScoredToken& token : prompt) {
    if (logprobs) part.places.push_back(PlaceOf(token, offset));
    part.text += token.text();
    offset += CodePoints(token.text());
    part.ids.push_back(token.token_id());
  }
  return part;
}

void Append(const CompletionChoice& part, CompletionChoice* choice) {
  choice->text += part.text;
  choice->sum_logprob += part.sum_logprob;
  Extend(part.ids, &choice->ids);
  Extend(part.places, &choice->places);
  if (part.reason != v1::FINISH_REASON_UNSPECIFIED) {
    choice->reason = part.reason;
  }
}

Json ChoiceJson(int64_t index, const CompletionChoice& choice,
                const ChoiceFormat& format) {
  const bool lists = format.logprobs && !choice.places.empty();
  Json json = {
      {"index", index},
      {"text", choice.text},
      {"logprobs", lists ? LogprobLists(choice.places, format.names) : Json()},
      {"finish_reason", FinishJson(choice.reason)}};
  if (format.token_ids) json["token_ids"] = choice.ids;
  return json;
}

}  // namespace txl
