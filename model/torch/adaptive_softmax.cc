#include "model/torch/adaptive_softmax.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <vector>

#include "model/torch/absorbed_attention.h"

namespace txl {
namespace {

struct BinTokens {
  std::vector<int64_t> row;    // in the batch
  std::vector<int64_t> index;  // in the bin's table
};

std::vector<BinTokens> TokensByBin(const ModelConfig& config,
                                   absl::Span<const int32_t> tokens) {
  std::vector<BinTokens> bins(config.n_bins());
  for (size_t row = 0; row < tokens.size(); ++row) {
    int64_t bin = 0;
    while (tokens[row] >= config.bin_begin(bin + 1)) ++bin;
    bins[bin].row.push_back(static_cast<int64_t>(row));
    bins[bin].index.push_back(tokens[row] - config.bin_begin(bin));
  }
  return bins;
}

at::Tensor IndexTensor(std::vector<int64_t>& values, at::Device device) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size())},
                       at::kLong)
      .to(device, at::kLong, /*non_blocking=*/false, /*copy=*/true);
}

// Logits of one bin before its bias: hidden [tile, d] -> [tile, rows of w].
at::Tensor Project(const at::Tensor& hidden, const HeadBin& bin) {
  return bin.proj.defined() ? at::mm(hidden, bin.proj) : hidden;
}

// hidden: exactly one tile; out [tile, V].
void TileLogProbs(const ModelConfig& config, const Weights& weights,
                  const at::Tensor& hidden, at::Tensor& out) {
  const int64_t bins = config.n_bins();
  const int64_t words = config.bin_size(0);
  const HeadBin& first = weights.head[0];
  const at::Tensor projected = Project(hidden, first);
  at::Tensor head =
      at::empty({hidden.size(0), words + bins - 1}, hidden.options());
  at::Tensor head_words = head.narrow(1, 0, words);
  head_words.copy_(at::mm(projected, first.w.t()));
  if (first.b.defined()) head_words.add_(first.b);
  if (bins > 1) {
    at::Tensor clusters = head.narrow(1, words, bins - 1);
    clusters.copy_(at::mm(projected, weights.cluster_w.t()));
    if (weights.cluster_b.defined()) clusters.add_(weights.cluster_b);
  }
  head = at::log_softmax(head, 1);
  out.narrow(1, 0, words).copy_(head.narrow(1, 0, words));
  for (int64_t b = 1; b < bins; ++b) {
    const HeadBin& bin = weights.head[b];
    at::Tensor tail = at::mm(Project(hidden, bin), bin.w.t());
    if (bin.b.defined()) tail.add_(bin.b);
    tail = at::log_softmax(tail, 1);
    at::Tensor mine = out.narrow(1, config.bin_begin(b), config.bin_size(b));
    at::add_out(mine, tail, head.narrow(1, words + b - 1, 1));
  }
}

void AddBeats(const BeatPositions& beats, const Weights& weights,
              const TokenRows& tokens, at::Tensor& out) {
  std::vector<int64_t> beat, bar;
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    const int32_t ticks = TicksOf(tokens.ids[i], beats, tokens.ticks[i]);
    beat.push_back(BeatRow(beats, ticks));
    bar.push_back(BarRow(beats, ticks));
  }
  const auto rows = [&](const at::Tensor& table, std::vector<int64_t>& index) {
    return table.index_select(0, IndexTensor(index, table.device()));
  };
  out.narrow(0, 0, static_cast<int64_t>(beat.size()))
      .add_(rows(weights.beat, beat).add_(rows(weights.bar, bar)));
}

}  // namespace

at::Tensor EmbedTokens(const ModelConfig& config, const Weights& weights,
                       const TokenRows& tokens, int64_t row_tile) {
  const at::Tensor& like = weights.embedding[0].w;
  const int64_t rows =
      PaddedRows(static_cast<int64_t>(tokens.ids.size()), row_tile);
  at::Tensor out = at::zeros({rows, config.d_model}, like.options());
  std::vector<BinTokens> bins = TokensByBin(config, tokens.ids);
  for (size_t b = 0; b < bins.size(); ++b) {
    if (bins[b].row.empty()) continue;
    const EmbeddingBin& bin = weights.embedding[b];
    const int64_t count = static_cast<int64_t>(bins[b].row.size());
    at::Tensor found =
        bin.w.index_select(0, IndexTensor(bins[b].index, like.device()));
    if (bin.proj.defined()) {
      found = TiledLinear(PadRows(found, row_tile), bin.proj, {}, row_tile)
                  .narrow(0, 0, count);
    }
    out.index_copy_(0, IndexTensor(bins[b].row, like.device()), found);
  }
  if (config.scale_embedding) {
    out.mul_(std::sqrt(static_cast<double>(config.d_model)));
  }
  if (config.beat_positions.has_value()) {
    AddBeats(*config.beat_positions, weights, tokens, out);
  }
  return out;
}

at::Tensor FullLogProbs(const ModelConfig& config, const Weights& weights,
                        const at::Tensor& hidden, int64_t row_tile) {
  const int64_t count = hidden.size(0);
  const at::Tensor padded = PadRows(hidden, row_tile);
  at::Tensor out =
      at::empty({padded.size(0), config.vocab_size}, hidden.options());
  for (int64_t row = 0; row < padded.size(0); row += row_tile) {
    at::Tensor tile = out.narrow(0, row, row_tile);
    TileLogProbs(config, weights, padded.narrow(0, row, row_tile), tile);
  }
  return out.narrow(0, 0, count);
}

}  // namespace txl
