#pragma once

// A batch of short sequences, generated with memory and without: what the
// sorter's article compares (a prompt of 20 digits, 20 more greedily).

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/step_runner.h"

namespace txl {

struct BatchOptions {
  int32_t sequences = 128;
  int64_t prompt_tokens = 20;
  int64_t generated_tokens = 20;

  // Positions that a sequence feeds: the last token is only sampled.
  int64_t fed_tokens() const { return prompt_tokens + generated_tokens - 1; }
};

// Generated ids [sequences][generated_tokens].
using BatchTokens = std::vector<std::vector<int32_t>>;

// Feeds every prompt once, then one token of each sequence a step. The
// sequences take slots 0.. from a cleared state. REQUIRES: slots and max_rows
// for all prompts, a memory of fed_tokens().
absl::StatusOr<BatchTokens> GenerateWithMemory(StepRunner* runner,
                                               const BatchOptions& options);

// Feeds every sequence from its first token on for every token that it grows
// by. REQUIRES: max_rows for fed_tokens() of all.
absl::StatusOr<BatchTokens> GenerateRecomputing(StepRunner* runner,
                                                const BatchOptions& options);

}  // namespace txl
