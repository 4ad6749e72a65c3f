#pragma once

// The objects of an answer of /v1/completions. Pure.
//
// The chosen token's probability is the same decimal wherever it stands: who
// looks for the largest finds it. A probability of 0 is -9999, JSON has no
// infinity.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/text/vocabulary.h"
#include "txl/v1/generation_service.pb.h"

namespace txl {

// Lists of `logprobs`, an entry for each token.
struct LogprobLists {
  std::vector<std::string> tokens;
  std::vector<std::optional<float>> token_logprobs;
  std::vector<nlohmann::json> top_logprobs;  // objects, null without context
  std::vector<int64_t> text_offset;          // code points
};

// Names tokens in those lists.
class TokenNames {
 public:
  // `vocabulary` null, or `as_ids`: "token_id:7".
  TokenNames(const Vocabulary* vocabulary, bool as_ids)
      : vocabulary_(as_ids ? nullptr : vocabulary) {}
  // The token's own spelling, what is no UTF-8 in it as U+FFFD.
  std::string Of(uint32_t id) const;

 private:
  const Vocabulary* const vocabulary_;
};

// Adds a token whose text begins at `offset`. Token is v1::Token or
// v1::ScoredToken.
void AddLogprob(const v1::Token& token, int64_t offset, const TokenNames& names,
                LogprobLists* lists);
void AddLogprob(const v1::ScoredToken& token, int64_t offset,
                const TokenNames& names, LogprobLists* lists);
nlohmann::json ToJson(const LogprobLists& lists);

// Code points of valid UTF-8.
int64_t CodePoints(const std::string& text);

// "stop", "length"; null for a turn that goes on.
nlohmann::json FinishJson(v1::FinishReason reason);

nlohmann::json UsageJson(int64_t prompt_tokens, int64_t generated_tokens);

// What all objects of one answer have.
struct CompletionHead {
  std::string id;
  int64_t created = 0;  // Unix seconds
  std::string model;
  std::string fingerprint;
};
nlohmann::json CompletionJson(const CompletionHead& head,
                              nlohmann::json choices);

}  // namespace txl
