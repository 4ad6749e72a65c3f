#pragma once

// ScoreAlternativesRequest -> checked native values, and the answer. As
// convert_input.h.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/text/vocabulary.h"
#include "server/api/limits.h"
#include "server/api/model_facts.h"
#include "server/session/turn_events.h"
#include "txl/v1/generation_service.pb.h"

namespace txl {

// A ScoreAlternativesRequest that may be run.
struct AlternativesParams {
  std::string session_id;                          // empty: temporary
  std::vector<int32_t> context;                    // may be empty
  std::vector<std::vector<int32_t>> alternatives;  // >= 1, none empty
  bool return_tokens = false;

  int64_t tokens() const;  // of all of them
};

absl::StatusOr<AlternativesParams> ReadAlternatives(
    const v1::ScoreAlternativesRequest& request, const ModelFacts& facts,
    const RequestLimits& limits);

// The answer, from the scores of all alternatives one after the other.
// `detokenizer`: the state of text behind the session, null for a model without
// a tokenizer; used with return_tokens only.
v1::ScoreAlternativesResponse WriteAlternatives(
    const AlternativesParams& params, const Detokenizer* detokenizer,
    absl::Span<const ScoredToken> scored);

}  // namespace txl
