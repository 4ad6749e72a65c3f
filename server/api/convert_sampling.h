#pragma once

// Sampling, stop and output fields: defaults (request -> generation.json -> the
// API's) and ranges. Pure.

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/sampling/sampling_params.h"
#include "server/api/limits.h"
#include "server/api/model_facts.h"
#include "server/scheduler/turn.h"
#include "txl/v1/sampling.pb.h"

namespace txl {

// Alternatives that are reported for each token.
struct LogprobParams {
  int32_t top = 0;
  std::shared_ptr<const std::vector<int32_t>> ids;  // null: none

  int64_t count() const {
    return top + (ids == nullptr ? 0 : static_cast<int64_t>(ids->size()));
  }
};

struct OutputParams {
  LogprobParams logprobs;
  bool include_token_bytes = false;
  int32_t tokens_per_message = 1;
};

// Everything but the seed when the request has none: it is then 0 and the
// caller draws one.
absl::StatusOr<SamplingParams> ReadSampling(const v1::SamplingParams& request,
                                            const ModelFacts& facts,
                                            const RequestLimits& limits);
absl::StatusOr<StopRules> ReadStop(const v1::StopConditions& request,
                                   const ModelFacts& facts,
                                   const RequestLimits& limits);
absl::StatusOr<OutputParams> ReadOutput(const v1::OutputOptions& request,
                                        const ModelFacts& facts,
                                        const RequestLimits& limits);
// min_tokens <= max_tokens, and, above 0, it leaves a token that is allowed
// besides the stop and end tokens; after all defaults.
absl::Status CheckMinTokens(const SamplingParams& sampling,
                            const StopRules& stop, int64_t vocab_size);

// Ids as int32, each in [0, vocab_size); else FIELD_INVALID "FIELD[i]".
absl::StatusOr<std::vector<int32_t>> ReadIds(
    const google::protobuf::RepeatedField<uint32_t>& ids,
    absl::string_view field, int64_t vocab_size);
// At most `most` of them; else OVER_LIMIT.
absl::StatusOr<std::vector<int32_t>> ReadFewIds(
    const google::protobuf::RepeatedField<uint32_t>& ids,
    absl::string_view field, int64_t most, int64_t vocab_size);

// A message's fields `logprobs` and `logprob_token_ids`, whose names begin with
// `prefix` in errors. OVER_LIMIT above the limit of alternatives.
absl::StatusOr<LogprobParams> ReadLogprobs(
    uint32_t logprobs, const google::protobuf::RepeatedField<uint32_t>& ids,
    absl::string_view prefix, const ModelFacts& facts,
    const RequestLimits& limits);

// What a request that says nothing gets.
SamplingParams DefaultSampling(const ModelFacts& facts);
StopRules DefaultStop(const ModelFacts& facts, const RequestLimits& limits);

// Every field present; end_token_ids have no field.
void WriteSampling(const SamplingParams& params, v1::SamplingParams* message);
void WriteStop(const StopRules& stop, v1::StopConditions* message);

}  // namespace txl
