#pragma once

// What answers of /v1/completions and /v1/chat/completions are made of. Pure.
//
// The chosen token's probability is the same decimal wherever it stands: who
// looks for the largest finds it. A probability of 0 is kNeverLogprob.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/text/vocabulary.h"
#include "txl/v1/generation_service.pb.h"

namespace txl {

// A token's place in `logprobs`.
struct TokenPlace {
  uint32_t id = 0;
  std::optional<float> logprob;  // absent: a first token without context
  int64_t text_offset = 0;       // code points
  std::vector<std::pair<uint32_t, float>> top;  // alternatives, likeliest first
};

// A token whose text begins at `offset`.
TokenPlace PlaceOf(const v1::Token& token, int64_t offset);
TokenPlace PlaceOf(const v1::ScoredToken& token, int64_t offset);

// Names tokens in lists of probabilities.
class TokenNames {
 public:
  // `vocabulary` null, or `as_ids`: "token_id:7".
  TokenNames(const Vocabulary* vocabulary, bool as_ids)
      : vocabulary_(vocabulary), as_ids_(as_ids) {}
  // The token's own spelling, what is no UTF-8 in it as U+FFFD.
  std::string Of(uint32_t id) const;
  // Its bytes as a list of numbers; null without a vocabulary.
  nlohmann::json Bytes(uint32_t id) const;

 private:
  const Vocabulary* const vocabulary_;
  const bool as_ids_;
};

// A logarithm that JSON has.
double Finite(float logprob);

// The lists of a completion's `logprobs`, an entry for each place.
nlohmann::json LogprobLists(const std::vector<TokenPlace>& places,
                            const TokenNames& names);

// "stop", "length"; null for a turn that goes on.
nlohmann::json FinishJson(v1::FinishReason reason);

nlohmann::json UsageJson(int64_t prompt_tokens, int64_t generated_tokens);

// What all objects of one answer have.
struct CompletionHead {
  std::string id;
  std::string object;   // "text_completion"
  int64_t created = 0;  // Unix seconds
  std::string model;
  std::string fingerprint;
};
nlohmann::json CompletionJson(const CompletionHead& head,
                              nlohmann::json choices);

}  // namespace txl
