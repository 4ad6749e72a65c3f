#pragma once

// Feeds a token sequence in given cuts to either network.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "model/reference/network.h"
#include "model/train/training_state.h"

namespace txl {

struct TokenFeed {
  std::vector<int32_t> tokens;  // T >= 1 ids in [0, V)
  std::vector<int64_t> cuts;    // lengths of the calls, each >= 1, sum T
};

struct FeedResult {
  at::Tensor logprobs;  // [T, V]; row t: the distribution of token t + 1
  at::Tensor memory;    // [L, m, d] after the last call; undefined: none
};

// Reads `tokens` and, when `use_segments`, `segments` of the file at `path`;
// else one token per call. Errors: InvalidArgument naming file and tensor.
absl::StatusOr<TokenFeed> MakeTokenFeed(const TensorFile& file,
                                        int64_t vocab_size, bool use_segments,
                                        const std::string& path);

// The model's own meaning of the cuts: its window over each call's memory.
FeedResult FeedReference(const ReferenceNetwork& network,
                         const TokenFeed& feed);

// The serving step on one slot, as a server takes it: native for float32 on the
// CPU, else LibTorch. Values equal those of one token per call.
absl::StatusOr<FeedResult> FeedServing(const ModelConfig& config,
                                       Weights weights, const TokenFeed& feed);

}  // namespace txl
