#pragma once

// Sampling, stop and output fields: defaults (request -> generation.json -> the
// API's) and ranges. Pure.

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/sampling/sampling_params.h"
#include "server/api/limits.h"
#include "server/api/model_facts.h"
#include "server/scheduler/turn.h"
#include "txl/v1/sampling.pb.h"

namespace txl {

struct OutputParams {
  int32_t top_logprobs = 0;
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
// min_tokens <= max_tokens, and, above 0, it leaves a token that may be sampled
// besides the stop and end tokens; after all defaults.
absl::Status CheckMinTokens(const SamplingParams& sampling,
                            const StopRules& stop, int64_t vocab_size);

// `count`, when it is in [0, limit]; else OVER_LIMIT.
absl::StatusOr<int32_t> ReadLogprobs(uint32_t count, absl::string_view field,
                                     const RequestLimits& limits);

// Ids as int32, each in [0, vocab_size); else FIELD_INVALID "FIELD[i]".
absl::StatusOr<std::vector<int32_t>> ReadIds(
    const google::protobuf::RepeatedField<uint32_t>& ids,
    absl::string_view field, int64_t vocab_size);

// What a request that says nothing gets.
SamplingParams DefaultSampling(const ModelFacts& facts);
StopRules DefaultStop(const ModelFacts& facts, const RequestLimits& limits);

// Every field present; end_token_ids have no field.
void WriteSampling(const SamplingParams& params, v1::SamplingParams* message);
void WriteStop(const StopRules& stop, v1::StopConditions* message);

}  // namespace txl
