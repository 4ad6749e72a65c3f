#pragma once

// What a token's distribution must be, written down step by step in the
// plainest way: every probability, sorted in full, renormalised after each
// filter. Shares nothing with the code under test.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "model/sampling/sampling_params.h"
#include "model/sampling/token_kinds.h"

namespace txl {

struct OracleContext {
  std::vector<int32_t> recent_ids;
  std::vector<int32_t> banned_ids;
  std::vector<TokenKind> kinds;
};

// Probability of each id; 0 for ids that are not kept.
// REQUIRES: temperature > 0, not everything banned.
std::vector<double> OracleDistribution(const std::vector<float>& logprobs,
                                       const SamplingParams& params,
                                       const OracleContext& context);

// The adjusted log-probabilities alone: kinds, bias, penalties, bans.
std::vector<double> OracleAdjusted(const std::vector<float>& logprobs,
                                   const SamplingParams& params,
                                   const OracleContext& context);

// A normalised distribution of `size` ids; larger `spread` (in nats): further
// from uniform.
std::vector<float> RandomLogprobs(std::mt19937& random, size_t size,
                                  double spread);

// A parameter of the table below set to a value that changes something.
struct ParameterCase {
  std::string name;
  void (*set)(SamplingParams& params);
};

// Every parameter that changes the distribution, for vocabularies of >= 12 ids.
std::vector<ParameterCase> AllParameterCases();

}  // namespace txl
