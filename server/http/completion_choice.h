#pragma once

// One choice of a completion, whole or the part of it that an event brings.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "server/http/completion_json.h"
#include "txl/v1/generation_service.pb.h"

namespace txl {

struct CompletionChoice {
  bool begins = false;  // a chat's first part
  std::string text;
  std::vector<TokenPlace> places;
  std::vector<uint32_t> ids;
  double sum_logprob = 0;  // of the generated tokens
  v1::FinishReason reason = v1::FINISH_REASON_UNSPECIFIED;
};

using ScoredTokens = google::protobuf::RepeatedPtrField<v1::ScoredToken>;

struct ChoiceFormat {
  bool logprobs = false;
  bool token_ids = false;
  TokenNames names;
};

// A generated token whose text begins at `offset`; with its place only where
// `logprobs` are wanted.
CompletionChoice PartOf(const v1::Token& token, int64_t offset, bool logprobs);
// Likewise the tokens of a prompt.
CompletionChoice PartOf(const ScoredTokens& prompt, bool logprobs);

// Adds a part to what came before it.
void Append(const CompletionChoice& part, CompletionChoice* choice);

// Of a text completion.
nlohmann::json ChoiceJson(int64_t index, const CompletionChoice& choice,
                          const ChoiceFormat& format);

}  // namespace txl
