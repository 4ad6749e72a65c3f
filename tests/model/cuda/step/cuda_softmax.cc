#include "tests/model/cuda/step/cuda_softmax.h"

#include <algorithm>

#include "model/cuda/kernels/rows.h"
#include "model/step/model_step.h"

namespace txl::cuda {
namespace {

// Rows that a cluster is evaluated for at once.
constexpr int kTailRows = 16;

}  // namespace

template <typename T>
class CudaSoftmax<T>::Row final : public NextTokenDistribution {
 public:
  Row(CudaSoftmax& softmax, int32_t index)
      : softmax_(softmax),
        index_(index),
        cluster_words_(softmax.bins_.clusters()),
        is_evaluated_(softmax.bins_.clusters()) {}

  const VocabularyBins& bins() const override { return softmax_.bins_; }
  absl::Span<const float> Words() override {
    return {head_, static_cast<size_t>(softmax_.bins_.ends[0])};
  }
  double ClusterMass(size_t c) override {
    return head_[softmax_.bins_.ends[0] + static_cast<int64_t>(c)];
  }
  absl::Span<const float> ClusterWords(size_t c) override {
    if (!is_evaluated_[c]) softmax_.EvaluateCluster(c, {&index_, 1});
    return cluster_words_[c];
  }
  bool IsEvaluated(size_t c) const override { return is_evaluated_[c]; }

  // `head` [n_0 + C]: words, then clusters; stays where it is.
  void SetHead(const float* head) {
    head_ = head;
    std::fill(is_evaluated_.begin(), is_evaluated_.end(), false);
  }
  // `tail`: log P(word | c).
  void SetCluster(size_t c, const float* tail) {
    std::vector<float>& words = cluster_words_[c];
    words.assign(tail, tail + softmax_.bins_.cluster_size(c));
    const float mass = static_cast<float>(ClusterMass(c));
    for (float& word : words) word += mass;
    is_evaluated_[c] = true;
  }

 private:
  CudaSoftmax& softmax_;
  const int32_t index_;
  const float* head_ = nullptr;
  std::vector<std::vector<float>> cluster_words_;
  std::vector<bool> is_evaluated_;
};

template <typename T>
CudaSoftmax<T>::CudaSoftmax(const Parts& parts, int64_t rows)
    : parts_(parts),
      bins_(BinsOf(parts.config)),
      words_of_(parts.weights, rows, parts.products, parts.stream) {
  const int64_t stride = parts.weights.shape.stride;
  wanted_ = Array<T>(MemoryKind::kDevice, rows * stride);
  const int64_t head = rows * parts.weights.bins[0].words.outputs;
  int64_t tail = 0;
  for (const CudaBin<T>& bin : parts.weights.bins) {
    if (&bin == &parts.weights.bins[0]) continue;
    tail = std::max(tail, int64_t{kTailRows} * bin.words.outputs);
  }
  logits_ = Array<float>(MemoryKind::kDevice, std::max(head, tail));
  head_ = Array<float>(MemoryKind::kPinned, head);
  if (bins_.clusters() == 0) return;
  gathered_ = Array<T>(MemoryKind::kDevice, kTailRows * stride);
  tail_ = Array<float>(MemoryKind::kPinned, tail);
  in_tail_ = Array<int32_t>(MemoryKind::kPinned, kTailRows);
  gathers_ = Array<int32_t>(MemoryKind::kDevice, kTailRows);
}

template <typename T>
CudaSoftmax<T>::~CudaSoftmax() = default;

template <typename T>
void CudaSoftmax<T>::QueueHead(int rows, const T* hidden,
                               const int32_t* wanted) {
  LaunchGatherRows<T>(
      parts_.stream,
      {hidden, parts_.weights.shape.stride, wanted, rows, {}, wanted_.data()});
  words_of_.Queue({0, rows, wanted_.data(), logits_.data()});
  const int64_t numbers = int64_t{rows} * parts_.weights.bins[0].words.outputs;
  parts_.stream.Copy(head_.data(), logits_.data(),
                     static_cast<size_t>(numbers) * sizeof(float));
}

template <typename T>
absl::Span<NextTokenDistribution* const> CudaSoftmax<T>::Distributions(
    int64_t rows) {
  result_.clear();
  for (int64_t i = 0; i < rows; ++i) {
    if (i == static_cast<int64_t>(rows_.size())) {
      rows_.push_back(std::make_unique<Row>(*this, static_cast<int32_t>(i)));
    }
    rows_[i]->SetHead(head_.data() + i * parts_.weights.bins[0].words.outputs);
    result_.push_back(rows_[i].get());
  }
  return result_;
}

// Always for kTailRows rows, whatever the number of those that need it, because
// the shape of a product decides its last bits; who is missing repeats the
// first one.
template <typename T>
void CudaSoftmax<T>::EvaluateCluster(size_t cluster,
                                     absl::Span<const int32_t> rows) {
  const int64_t bin = static_cast<int64_t>(cluster) + 1;
  const int64_t outputs = parts_.weights.bins[bin].words.outputs;
  while (!rows.empty()) {
    const absl::Span<const int32_t> now = rows.subspan(0, kTailRows);
    rows.remove_prefix(now.size());
    std::fill_n(in_tail_.data(), kTailRows, now[0]);
    std::copy(now.begin(), now.end(), in_tail_.data());
    parts_.stream.Copy(gathers_.data(), in_tail_.data(),
                       static_cast<size_t>(in_tail_.bytes()));
    LaunchGatherRows<T>(parts_.stream, {wanted_.data(),
                                        parts_.weights.shape.stride,
                                        gathers_.data(),
                                        kTailRows,
                                        {},
                                        gathered_.data()});
    words_of_.Queue({bin, kTailRows, gathered_.data(), logits_.data()});
    const int64_t numbers = static_cast<int64_t>(now.size()) * outputs;
    parts_.stream.Copy(tail_.data(), logits_.data(),
                       static_cast<size_t>(numbers) * sizeof(float));
    parts_.stream.Wait();
    for (size_t i = 0; i < now.size(); ++i) {
      rows_[now[i]]->SetCluster(
          cluster, tail_.data() + static_cast<int64_t>(i) * outputs);
    }
  }
}

template <typename T>
void CudaSoftmax<T>::EvaluateClusters(absl::Span<const ClusterOfRow> clusters) {
  for (size_t cluster = 0; cluster < bins_.clusters(); ++cluster) {
    rows_in_bin_.clear();
    for (const ClusterOfRow& wanted : clusters) {
      if (wanted.cluster != cluster) continue;
      if (rows_[wanted.row]->IsEvaluated(cluster)) continue;
      rows_in_bin_.push_back(static_cast<int32_t>(wanted.row));
    }
    if (!rows_in_bin_.empty()) EvaluateCluster(cluster, rows_in_bin_);
  }
}

template class CudaSoftmax<float>;
template class CudaSoftmax<Bf16>;
template class CudaSoftmax<F16>;

}  // namespace txl::cuda
