#include "server/http/completion_choice.h"

#include <nlohmann/json.hpp>

#include "model/text/utf8.h"

namespace txl {
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
