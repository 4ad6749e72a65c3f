#pragma once

// How the next token is chosen. Plain numbers: no tensor, no proto.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"

namespace txl {

inline constexpr int32_t kMaxPenaltyWindow = 4096;
inline constexpr size_t kMaxLogitBiasEntries = 1024;
inline constexpr size_t kMaxAllowedTokens = 1024;
// What a bias and a repetition penalty near 0 make of a log-probability at
// most: every legal request leaves finite numbers, also in float32. Words that
// reach it tie, and the lowest id stands first.
inline constexpr double kMostAdjustedLogprob = 1e30;

// Every field at its API default. Ranges are what ValidateSamplingParams
// accepts; they are repeated in proto/txl/v1.
struct SamplingParams {
  double temperature = 1.0;         // [0, 100]; 0 = greedy
  int64_t top_k = 0;                // [0, V]; 0 = off
  double top_p = 1.0;               // (0, 1]; 1 = off
  double min_p = 0.0;               // [0, 1]; 0 = off
  double typical_p = 1.0;           // (0, 1]; 1 = off
  double repetition_penalty = 1.0;  // (0, 10]; 1 = off
  double presence_penalty = 0.0;    // [-2, 2]; 0 = off
  double frequency_penalty = 0.0;   // [-2, 2]; 0 = off
  int32_t penalty_window = 64;      // [0, 4096] last ids that penalties see
  std::map<int32_t, double> logit_bias;  // id -> [-100, 100]; <= 1024 entries
  // The only ids that are drawn, distinct; <= 1024. Empty: all.
  std::vector<int32_t> allowed_token_ids;
  // A token is of a kind that may follow the session's last one, and the
  // temperature is that kind's (token_kinds.h). Needs a model with kinds.
  bool follow_kinds = false;
  uint64_t seed = 0;
  int32_t min_tokens = 0;  // [0, max_tokens]; bans stop and end tokens before
};

// SamplingParams' fields, each present or not: a request's, generation.json's.
struct SamplingOverrides {
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> typical_p;
  std::optional<double> repetition_penalty;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  std::optional<int32_t> penalty_window;
  std::map<int32_t, double> logit_bias;
  std::vector<int32_t> allowed_token_ids;
  std::optional<bool> follow_kinds;
  std::optional<uint64_t> seed;
  std::optional<int32_t> min_tokens;
};

// `base` with every present field of `overrides` in place. A logit_bias or
// allowed_token_ids that is not empty replaces the whole of it.
SamplingParams ApplyOverrides(SamplingParams base,
                              const SamplingOverrides& overrides);

// InvalidArgument naming the field that is out of range (or not finite) for a
// vocabulary of vocab_size ids, or that needs kinds of tokens when the model
// has none. The message starts with "FIELD: ".
absl::Status ValidateSamplingParams(const SamplingParams& params,
                                    int64_t vocab_size, bool has_kinds = true);

}  // namespace txl
