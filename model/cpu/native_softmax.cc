#include "model/cpu/native_softmax.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/step/model_step.h"

namespace txl {
namespace {

// The embedding of word `index` of a bin, e_b numbers.
void CopyEmbedding(const NativeBin& bin, int64_t index, float* out) {
  const PackedMatrix& table =
      bin.embedding.outputs() == 0 ? bin.words : bin.embedding;
  table.CopyRow(index, out);
}

}  // namespace

class NativeSoftmax::Row final : public NextTokenDistribution {
 public:
  Row(NativeSoftmax& softmax, int64_t index)
      : softmax_(softmax),
        index_(index),
        cluster_words_(softmax.bins_.clusters()),
        is_evaluated_(softmax.bins_.clusters()) {}

  const VocabularyBins& bins() const override { return softmax_.bins_; }
  absl::Span<const float> Words() override { return words_; }
  double ClusterMass(size_t c) override { return masses_[c]; }
  absl::Span<const float> ClusterWords(size_t c) override {
    if (!is_evaluated_[c]) softmax_.EvaluateCluster(c, {&index_, 1});
    return cluster_words_[c];
  }
  bool IsEvaluated(size_t c) const override { return is_evaluated_[c]; }

  // `head` [n_0 + C]: words, then clusters.
  void SetHead(const float* head) {
    const int64_t words = softmax_.bins_.ends[0];
    words_.assign(head, head + words);
    masses_.assign(head + words, head + words + is_evaluated_.size());
    std::fill(is_evaluated_.begin(), is_evaluated_.end(), false);
  }
  // `tail`: log P(word | c).
  void SetCluster(size_t c, const float* tail) {
    std::vector<float>& words = cluster_words_[c];
    words.assign(tail, tail + softmax_.bins_.cluster_size(c));
    ShiftRow(words.data(), static_cast<int64_t>(words.size()), masses_[c]);
    is_evaluated_[c] = true;
  }

 private:
  NativeSoftmax& softmax_;
  const int64_t index_;
  std::vector<float> words_, masses_;
  std::vector<std::vector<float>> cluster_words_;
  std::vector<bool> is_evaluated_;
};

NativeSoftmax::NativeSoftmax(const ModelConfig& config,
                             const NativeWeights& weights, ThreadPool& pool)
    : config_(config), weights_(weights), pool_(pool), bins_(BinsOf(config)) {}

NativeSoftmax::~NativeSoftmax() = default;

void NativeSoftmax::Embed(absl::Span<const int32_t> tokens,
                          absl::Span<const int32_t> ticks, float* out,
                          int64_t stride) {
  for (int64_t bin = 0; bin < static_cast<int64_t>(weights_.bins.size());
       ++bin) {
    const int64_t begin = config_.bin_begin(bin);
    const int64_t end = bins_.ends[bin];
    rows_in_bin_.clear();
    for (size_t row = 0; row < tokens.size(); ++row) {
      if (tokens[row] >= begin && tokens[row] < end) {
        rows_in_bin_.push_back(static_cast<int64_t>(row));
      }
    }
    if (!rows_in_bin_.empty()) EmbedBin(bin, tokens, out, stride);
  }
  if (config_.beat_positions.has_value()) AddBeats(tokens, ticks, out, stride);
}

void NativeSoftmax::AddBeats(absl::Span<const int32_t> tokens,
                             absl::Span<const int32_t> ticks, float* out,
                             int64_t stride) {
  const BeatPositions& beats = *config_.beat_positions;
  const int64_t d = config_.d_model;
  for (size_t row = 0; row < tokens.size(); ++row) {
    const int32_t now = TicksOf(tokens[row], beats, ticks[row]);
    const float* beat = weights_.beat.data() + BeatRow(beats, now) * d;
    const float* bar = weights_.bar.data() + BarRow(beats, now) * d;
    float* to = out + static_cast<int64_t>(row) * stride;
    for (int64_t k = 0; k < d; ++k) to[k] += beat[k] + bar[k];
  }
}

void NativeSoftmax::EmbedBin(int64_t bin_index,
                             absl::Span<const int32_t> tokens, float* out,
                             int64_t stride) {
  const std::vector<int64_t>& rows = rows_in_bin_;
  const NativeBin& bin = weights_.bins[bin_index];
  const int64_t width = bin.words.inputs();
  const int64_t count = static_cast<int64_t>(rows.size());
  gathered_.resize(count * width);
  for (int64_t i = 0; i < count; ++i) {
    CopyEmbedding(bin, tokens[rows[i]] - config_.bin_begin(bin_index),
                  gathered_.data() + i * width);
  }
  RowBlock found = {gathered_.data(), width};
  if (bin.in_proj.outputs() != 0) {
    const int64_t padded = RoundUp(config_.d_model, kPanel);
    projected_.resize(count * padded);
    ApplyLinear({&bin.in_proj},
                {count, found, {}, projected_.data(), padded, &integers_},
                pool_);
    found = {projected_.data(), padded};
  }
  const float scale =
      config_.scale_embedding
          ? static_cast<float>(std::sqrt(static_cast<double>(config_.d_model)))
          : 1.0f;
  for (int64_t i = 0; i < count; ++i) {
    const float* row = found.data + i * found.stride;
    float* to = out + rows[i] * stride;
    for (int64_t k = 0; k < config_.d_model; ++k) to[k] = row[k] * scale;
  }
}

void NativeSoftmax::BinLogProbs(int64_t bin_index,
                                absl::Span<const int64_t> rows) {
  const NativeBin& bin = weights_.bins[bin_index];
  const int64_t count = static_cast<int64_t>(rows.size());
  gathered_.resize(count * config_.d_model);
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(hidden_ + rows[i] * stride_, config_.d_model,
                gathered_.data() + i * config_.d_model);
  }
  RowBlock x = {gathered_.data(), config_.d_model};
  if (bin.out_proj.outputs() != 0) {
    const int64_t padded = RoundUp(bin.out_proj.outputs(), kPanel);
    projected_.resize(count * padded);
    ApplyLinear({&bin.out_proj},
                {count, x, {}, projected_.data(), padded, &integers_}, pool_);
    x = {projected_.data(), padded};
  }
  const int64_t outputs = bin.words.outputs();
  const int64_t padded = RoundUp(outputs, kPanel);
  logits_.resize(count * padded);
  const float* bias = bin.bias.size() == 0 ? nullptr : bin.bias.data();
  ApplyLinear({&bin.words, bias},
              {count, x, {}, logits_.data(), padded, &integers_}, pool_);
  pool_.Run(count, [&](int64_t i, int) {
    float* row = logits_.data() + i * padded;
    ShiftRow(row, outputs, -LogSumExp(row, outputs));
  });
}

absl::Span<NextTokenDistribution* const> NativeSoftmax::Distributions(
    const float* hidden, int64_t rows, int64_t stride) {
  hidden_ = hidden;
  stride_ = stride;
  result_.clear();
  if (rows == 0) return result_;
  rows_in_bin_.resize(rows);
  std::iota(rows_in_bin_.begin(), rows_in_bin_.end(), 0);
  BinLogProbs(0, rows_in_bin_);
  const int64_t padded = RoundUp(weights_.bins[0].words.outputs(), kPanel);
  for (int64_t i = 0; i < rows; ++i) {
    if (i == static_cast<int64_t>(rows_.size())) {
      rows_.push_back(std::make_unique<Row>(*this, i));
    }
    rows_[i]->SetHead(logits_.data() + i * padded);
    result_.push_back(rows_[i].get());
  }
  return result_;
}

void NativeSoftmax::EvaluateCluster(size_t cluster,
                                    absl::Span<const int64_t> rows) {
  const int64_t bin = static_cast<int64_t>(cluster) + 1;
  BinLogProbs(bin, rows);
  const int64_t padded = RoundUp(weights_.bins[bin].words.outputs(), kPanel);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows_[rows[i]]->SetCluster(cluster, logits_.data() + i * padded);
  }
}

void NativeSoftmax::EvaluateClusters(absl::Span<const ClusterOfRow> clusters) {
  for (size_t cluster = 0; cluster < bins_.clusters(); ++cluster) {
    rows_in_bin_.clear();
    for (const ClusterOfRow& wanted : clusters) {
      if (wanted.cluster != cluster) continue;
      if (rows_[wanted.row]->IsEvaluated(cluster)) continue;
      rows_in_bin_.push_back(wanted.row);
    }
    if (!rows_in_bin_.empty()) EvaluateCluster(cluster, rows_in_bin_);
  }
}

}  // namespace txl
