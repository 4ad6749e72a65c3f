#pragma once

// What answers of /v1/completions and /v1/chat/completions are made of. Pure.
//
// The chosen token's probability is the same decimal wherever it stands: who
// looks for the largest finds it. A probability of 0 is kNeverLogprob.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/text/vocabulary.h"
#include "server/api/model_facts.h"
#include "server/http/completion_request.h"
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
  // The token's own spelling; bytes that are not UTF-8 become U+FFFD.
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

// `cached_tokens`: of the prompt's.
nlohmann::json UsageJson(int64_t prompt_tokens, int64_t cached_tokens,
                         int64_t generated_tokens);

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

// One choice of a completion, whole or the part of it that an event brings.

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
// The tokens of a prompt; with their places only where `logprobs` are wanted.
CompletionChoice PartOf(const ScoredTokens& prompt, bool logprobs);

// Adds a part to what came before it.
void Append(const CompletionChoice& part, CompletionChoice* choice);

// One choice of a text completion.
nlohmann::json ChoiceJson(int64_t index, const CompletionChoice& choice,
                          const ChoiceFormat& format);

// The choices of an answer of /v1/chat/completions. Pure.

// A whole choice, with its `message`.
nlohmann::json ChatChoiceJson(int64_t index, const CompletionChoice& choice,
                              const ChoiceFormat& format);

// A part of one, with its `delta`; the one that begins says whose it is.
nlohmann::json ChatDeltaJson(int64_t index, const CompletionChoice& part,
                             const ChoiceFormat& format);

// What is drawn for a completion before it runs.

// A head with a new id and the present time.
CompletionHead NewHead(const CompletionRequest& request,
                       const ModelFacts& facts);

// Absent: the turn chooses. A turn that may have run before also chooses if the
// body has no seed: a retry must be the same request, and it keeps the seed
// that was drawn.
std::optional<uint64_t> FirstSeed(const CompletionRequest& request,
                                  const ModelFacts& facts);

}  // namespace txl
