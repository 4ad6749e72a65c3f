#include "server/http/chat_json.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace txl {
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

}  // namespace txl
