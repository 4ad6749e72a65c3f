#pragma once

// A step's sampling, with the model's part played by the host: rows whose whole
// distribution is known, clusters handed over when the lists ask for them. And
// what txl::Sampler makes of the same numbers.

#include <cstdint>
#include <random>
#include <vector>

#include "model/cuda/kernels/sampling.h"
#include "model/sampling/distribution.h"
#include "model/sampling/sampling_params.h"

namespace txl::cuda {

struct RowToSample {
  std::vector<float> head;                   // words of bin 0, then clusters
  std::vector<std::vector<float>> clusters;  // log P of their words
  SamplingParams params;
  std::vector<int32_t> recent_ids;
  // Ids that a full ring of recent ones has forgotten: where it begins.
  int64_t forgotten = 0;
  std::vector<int32_t> banned_ids;
  int64_t min_position = 0;
  int64_t position = 0;  // of the token to sample
  int32_t target = -1;
  int top_count = 0;
  std::vector<int32_t> named;
  bool is_used = true;
};

struct SampledToken {
  SampleStatus status = SampleStatus::kOpen;
  int32_t token = -1;
  float logprob = 0;  // with kOk
  std::vector<TokenLogprob> top;
  uint32_t evaluated = 0;  // clusters that the device asked for
  // What the slot holds after it: the device's only.
  int32_t last_sampled = -1;
  std::vector<int32_t> recent_ids;
};

// Normalised: a head of the first bin's words and the clusters, and every
// cluster's words. `grain` > 0: logits are multiples of it, so that many are
// equal.
RowToSample RandomRow(std::mt19937& random, const VocabularyBins& bins,
                      double spread, double grain = 0);

struct StepOptions {
  int rounds = 1;
  int threads = 64;  // few: the emulator's time goes with them
  SamplingLimits limits = {16, 8, 32, 60};
};

// Rows that follow kinds follow SomeTable of the vocabulary.

// The device's. Expects the head's and the clusters' numbers to be the same
// after every launch, and lists in ascending order that ask once.
std::vector<SampledToken> SampleOnDevice(const VocabularyBins& bins,
                                         const std::vector<RowToSample>& rows,
                                         const StepOptions& options);

// The CPU's.
SampledToken SampleOnHost(const VocabularyBins& bins, const RowToSample& row);

}  // namespace txl::cuda
