#include "model/cuda/step/cuda_sampling.h"

#include <algorithm>

#include "model/cuda/kernels/rows.h"
#include "model/cuda/kernels/step_tokens.h"
#include "model/cuda/step/cuda_shape.h"

namespace txl::cuda {

int64_t PassRowBytes(const ModelConfig& config, const SamplingLimits& limits) {
  int64_t words = PaddedWidth(config.bin_size(0) + config.n_bins() - 1);
  for (int64_t bin = 1; bin < config.n_bins(); ++bin) {
    words += PaddedWidth(config.bin_size(bin));
  }
  return words * static_cast<int64_t>(sizeof(float)) +
         limits.total() * static_cast<int64_t>(sizeof(AdjustedWord)) +
         static_cast<int64_t>(sizeof(SamplingRowState));
}

int PassRows(const std::vector<int>& buckets, int64_t row_bytes,
             int64_t bytes) {
  int rows = kLinearRows;
  for (const int bucket : buckets) {
    if (bucket * row_bytes <= bytes) rows = std::max(rows, bucket);
  }
  return rows;
}

int ThreadsForSampling(const VocabularyBins& bins) {
  constexpr int kFewest = 64;
  constexpr int kWordsEach = 4;
  int64_t largest = bins.ends[0];
  for (size_t c = 0; c < bins.clusters(); ++c) {
    largest = std::max(largest, bins.cluster_size(c));
  }
  int threads = kFewest;
  while (threads < kSamplingThreads && threads * kWordsEach < largest) {
    threads *= 2;
  }
  return threads;
}

template <typename T>
CudaSampling<T>::CudaSampling(const Parts& parts, const VocabularyBins& bins,
                              int pass_rows)
    : parts_(parts),
      bins_(bins),
      pass_rows_(pass_rows),
      rounds_(bins.clusters() == 0 ? 0 : kSamplingRounds),
      words_of_(parts.weights, pass_rows, parts.products, parts.stream),
      index_(MemoryKind::kDevice, pass_rows),
      slot_(MemoryKind::kDevice, pass_rows),
      position_(MemoryKind::kDevice, pass_rows),
      hidden_(MemoryKind::kDevice, pass_rows * parts.weights.shape.stride),
      states_(MemoryKind::kDevice, pass_rows),
      adjusted_(MemoryKind::kDevice,
                int64_t{pass_rows} * parts.slots.limits.total()),
      finished_blocks_(MemoryKind::kDevice, 1) {
  const int64_t clusters = static_cast<int64_t>(bins.clusters());
  for (const CudaBin<T>& bin : parts.weights.bins) {
    Array<float> words(MemoryKind::kDevice,
                       int64_t{pass_rows} * bin.words.outputs);
    if (&bin == &parts.weights.bins[0]) {
      head_ = std::move(words);
    } else {
      clusters_.push_back(std::move(words));
    }
  }
  parts.stream.Fill(finished_blocks_.data(), 0, sizeof(int));
  if (parts.kinds != nullptr) {
    const std::vector<uint8_t>& kinds = parts.kinds->kind_of();
    const TokenKinds::Rules& rules = parts.kinds->rules();
    kinds_ =
        Array<uint8_t>(MemoryKind::kDevice, static_cast<int64_t>(kinds.size()));
    rules_ = Array<KindRule>(MemoryKind::kDevice,
                             static_cast<int64_t>(rules.size()));
    parts.stream.Copy(kinds_.data(), kinds.data(), kinds.size());
    parts.stream.Copy(rules_.data(), rules.data(), sizeof(rules));
  }
  if (clusters == 0) return;
  listed_ = Array<T>(MemoryKind::kDevice, hidden_.size());
  list_rows_ = Array<int32_t>(MemoryKind::kDevice, clusters * pass_rows);
  list_places_ = Array<int32_t>(MemoryKind::kDevice, clusters * pass_rows);
  list_begins_ = Array<int32_t>(MemoryKind::kDevice, clusters);
}

template <typename T>
SamplingArgs CudaSampling<T>::Args(const Pass& pass, bool with_top) const {
  const ResultArrays results = parts_.results.device();
  const int64_t clusters = static_cast<int64_t>(bins_.clusters());
  SamplingArgs args;
  args.rows = {pass.count, slot_.data(), position_.data()};
  args.targets = parts_.input.device_column(InputColumn::kTarget) + pass.first;
  if (with_top) {
    args.top_counts =
        parts_.input.device_column(InputColumn::kTopCount) + pass.first;
    args.named = parts_.input.device_column(InputColumn::kNamed) + pass.first;
    args.named_stride = parts_.input.max_rows();
  }
  args.clusters = static_cast<int>(clusters);
  std::copy(bins_.ends.begin(), bins_.ends.end(), args.ends);
  args.head = head_.data();
  args.head_stride = parts_.weights.bins[0].words.outputs;
  for (int64_t c = 0; c < clusters; ++c) {
    args.words[c] = {clusters_[c].data(),
                     parts_.weights.bins[c + 1].words.outputs};
  }
  args.slots = parts_.slots;
  args.kinds = kinds_.data();
  args.rules = rules_.data();
  args.work = {states_.data(), adjusted_.data(), finished_blocks_.data()};
  args.lists = {list_rows_.data(), list_places_.data(), list_begins_.data(),
                results.list_ends() + pass.first / pass_rows_ * clusters};
  args.rounds = rounds_;
  args.tokens = results.tokens() + pass.first;
  args.logprobs = results.logprobs() + pass.first;
  args.statuses = results.statuses() + pass.first;
  args.top_ids = results.top_ids() + int64_t{pass.first} * kMaxReported;
  args.top_logprobs =
      results.top_logprobs() + int64_t{pass.first} * kMaxReported;
  args.threads = ThreadsForSampling(bins_);
  return args;
}

template <typename T>
void CudaSampling<T>::Queue(int wanted, const StepRows& rows, const T* x,
                            bool with_top) {
  Pass pass;
  for (; pass.first < wanted; pass.first += pass_rows_) {
    pass.count = std::min(pass_rows_, wanted - pass.first);
    PickArgs pick;
    pick.count = pass.count;
    pick.picked = parts_.input.device_column(InputColumn::kWanted) + pass.first;
    pick.rows = rows;
    pick.unknown = parts_.results.device().unknown();
    pick.index = index_.data();
    pick.slot = slot_.data();
    pick.position = position_.data();
    LaunchPickRows(parts_.stream, pick);
    LaunchGatherRows<T>(parts_.stream, {x,
                                        parts_.weights.shape.stride,
                                        index_.data(),
                                        pass.count,
                                        {},
                                        hidden_.data()});
    words_of_.Queue({0, pass.count, hidden_.data(), head_.data()});
    QueuePass(Args(pass, with_top));
  }
}

template <typename T>
void CudaSampling<T>::QueuePass(const SamplingArgs& args) {
  SamplingArgs round = args;
  for (round.round = 0; round.round <= rounds_; ++round.round) {
    for (int c = 0; round.round > 0 && c < args.clusters; ++c) {
      QueueCluster(c, args);
    }
    LaunchSampling(parts_.stream, round);
  }
}

template <typename T>
void CudaSampling<T>::QueueCluster(int cluster, const SamplingArgs& args) {
  const int count = args.rows.count;
  BinRows<T> rows;
  rows.bin = cluster + 1;
  rows.count = count;
  rows.x = listed_.data();
  rows.logprobs = args.words[cluster].logprobs;
  rows.range = {args.lists.begin + cluster, args.lists.end + cluster};
  rows.rows = args.lists.rows + int64_t{cluster} * count;
  rows.masses = args.head + args.ends[0] + cluster;
  rows.mass_stride = args.head_stride;
  LaunchGatherRows<T>(parts_.stream,
                      {hidden_.data(), parts_.weights.shape.stride, rows.rows,
                       count, rows.range, listed_.data()});
  words_of_.Queue(rows);
}

template class CudaSampling<float>;
template class CudaSampling<Bf16>;
template class CudaSampling<F16>;

}  // namespace txl::cuda
