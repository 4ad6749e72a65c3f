#include "model/tool/token_feed.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/cpu/native_step.h"
#include "model/torch/torch_step.h"

namespace txl {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 30;

absl::StatusOr<std::vector<int64_t>> Integers(const TensorFile& file,
                                              const std::string& name,
                                              const std::string& path) {
  const auto it = file.tensors.find(name);
  if (it == file.tensors.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": tensor ", name, " is missing"));
  }
  const at::Tensor& tensor = it->second;
  if (tensor.dim() != 1 || tensor.scalar_type() != at::kLong ||
      tensor.numel() < 1 || tensor.numel() > kMaxTokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": tensor ", name, " must be I64 of one dimension, not empty"));
  }
  const int64_t* data = tensor.const_data_ptr<int64_t>();
  return std::vector<int64_t>(data, data + tensor.numel());
}

absl::StatusOr<std::vector<int64_t>> Segments(const TensorFile& file,
                                              int64_t total,
                                              const std::string& path) {
  TXL_ASSIGN_OR_RETURN(std::vector<int64_t> cuts,
                       Integers(file, "segments", path));
  int64_t left = total;
  for (int64_t cut : cuts) {
    if (cut < 1 || cut > left) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tensor segments: lengths must be >= 1 with the sum ",
          total));
    }
    left -= cut;
  }
  if (left != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": tensor segments: the sum is ", total - left,
                     ", the text has ", total, " tokens"));
  }
  return cuts;
}

// Calls feed_rows(position, rows) for every cut, at most `most` rows at a time.
void ForEachSegment(const TokenFeed& feed, int64_t most,
                    absl::FunctionRef<void(int64_t, int64_t)> feed_rows) {
  int64_t position = 0;
  for (const int64_t cut : feed.cuts) {
    for (const int64_t end = position + cut; position < end;) {
      const int64_t rows = std::min(end - position, most);
      feed_rows(position, rows);
      position += rows;
    }
  }
}

// log P of every id to `out`; returns the end.
float* CopyLogprobs(NextTokenDistribution& row, float* out) {
  const absl::Span<const float> words = row.Words();
  out = std::copy(words.begin(), words.end(), out);
  for (size_t c = 0; c < row.bins().clusters(); ++c) {
    const absl::Span<const float> tail = row.ClusterWords(c);
    out = std::copy(tail.begin(), tail.end(), out);
  }
  return out;
}

}  // namespace

absl::StatusOr<TokenFeed> MakeTokenFeed(const TensorFile& file,
                                        int64_t vocab_size, bool use_segments,
                                        const std::string& path) {
  TXL_ASSIGN_OR_RETURN(const std::vector<int64_t> tokens,
                       Integers(file, "tokens", path));
  TokenFeed feed;
  for (int64_t id : tokens) {
    if (id < 0 || id >= vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor tokens: id ", id,
                       " is outside the vocabulary of ", vocab_size));
    }
    feed.tokens.push_back(static_cast<int32_t>(id));
  }
  const int64_t total = static_cast<int64_t>(tokens.size());
  if (use_segments) {
    TXL_ASSIGN_OR_RETURN(feed.cuts, Segments(file, total, path));
  } else {
    feed.cuts.assign(total, 1);
  }
  return feed;
}

FeedResult FeedReference(const ReferenceNetwork& network,
                         const TokenFeed& feed) {
  const auto row = [&](const std::vector<int32_t>& numbers) {
    return at::tensor(numbers, at::kInt)
        .to(network.weights().embedding[0].w.device(), at::kLong)
        .unsqueeze(0);
  };
  const at::Tensor tokens = row(feed.tokens);
  at::Tensor ticks;
  if (network.config().beat_positions.has_value()) {
    ticks = row(TicksBefore(network.config().beat_positions, feed.tokens));
  }
  SegmentMemory memory = network.InitialMemory(1);
  std::vector<at::Tensor> logprobs;
  int64_t begin = 0;
  for (int64_t cut : feed.cuts) {
    ForwardOptions options;
    if (ticks.defined()) options.ticks = ticks.narrow(1, begin, cut);
    const at::Tensor hidden =
        network.Forward(tokens.narrow(1, begin, cut), memory, options);
    logprobs.push_back(network.LogProbs(hidden).squeeze(0));
    begin += cut;
  }
  std::vector<at::Tensor> layers;
  for (const at::Tensor& rows : memory.layers) {
    layers.push_back(rows.squeeze(0));
  }
  return {at::cat(logprobs), at::stack(layers)};
}

namespace {

// Feeds as the server runs float32 on the CPU.
absl::StatusOr<FeedResult> FeedNative(const ModelConfig& config,
                                      const Weights& weights,
                                      const TokenFeed& feed) {
  const NativeStepOptions options;
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelStep> step,
                       CreateNativeStep(config, weights, options));
  step->Clear(0);
  std::vector<int32_t> all(options.spare_rows);
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int32_t> ticks =
      TicksBefore(config.beat_positions, feed.tokens);
  const int64_t total = static_cast<int64_t>(feed.tokens.size());
  const at::Tensor logprobs = at::empty({total, config.vocab_size}, at::kFloat);
  float* out = logprobs.data_ptr<float>();
  ForEachSegment(feed, options.spare_rows, [&](int64_t position, int64_t rows) {
    const StepSegment segment{
        0, position, absl::MakeConstSpan(feed.tokens).subspan(position, rows),
        absl::MakeConstSpan(all).first(rows),
        absl::MakeConstSpan(ticks).subspan(position, rows)};
    for (NextTokenDistribution* row : step->Run({&segment, 1})) {
      out = CopyLogprobs(*row, out);
    }
  });
  return FeedResult{logprobs, at::Tensor()};
}

absl::StatusOr<FeedResult> FeedTorch(const ModelConfig& config, Weights weights,
                                     const TokenFeed& feed) {
  const TorchStepOptions options;
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<TorchStep> step,
                       TorchStep::Create(config, std::move(weights), options));
  step->Clear(0);
  std::vector<int32_t> all(options.spare_rows);
  std::iota(all.begin(), all.end(), 0);
  const std::vector<int32_t> ticks =
      TicksBefore(config.beat_positions, feed.tokens);
  std::vector<at::Tensor> logprobs;
  ForEachSegment(feed, options.spare_rows, [&](int64_t position, int64_t rows) {
    const StepSegment segment{
        0, position, absl::MakeConstSpan(feed.tokens).subspan(position, rows),
        absl::MakeConstSpan(all).first(rows),
        absl::MakeConstSpan(ticks).subspan(position, rows)};
    logprobs.push_back(step->LogProbs({&segment, 1}));
  });
  return FeedResult{at::cat(logprobs), at::Tensor()};
}

}  // namespace

absl::StatusOr<FeedResult> FeedServing(const ModelConfig& config,
                                       Weights weights, const TokenFeed& feed) {
  const at::Tensor& like = weights.layers.at(0).wq;
  if (like.is_cpu() && like.scalar_type() == at::kFloat) {
    return FeedNative(config, weights, feed);
  }
  return FeedTorch(config, std::move(weights), feed);
}

}  // namespace txl
