#pragma once

// What the device keeps of a slot to sample its tokens: parameters, and the
// lists that they refer to, in one record of fixed size per slot, so that a
// slot is configured by one copy. Records have the same layout on the host.

#include <cstdint>

#include "absl/types/span.h"
#include "model/base/anywhere.h"
#include "model/sampling/distribution.h"
#include "model/sampling/sampling_params.h"

namespace txl::cuda {

inline constexpr int kMaxSampledClusters = 16;

// Most entries of a record's lists. The defaults take every request that
// ValidateSamplingParams does, with the server's 64 stop tokens and as many end
// tokens.
struct SamplingLimits {
  int biases = 1024;
  int banned = 128;
  int recent = 4096;
  int allowed = 1024;

  TXL_ANYWHERE int total() const { return biases + banned + recent + allowed; }
};

// How a token is found; a function of the parameters.
enum class SamplingPath : int32_t {
  kBest,           // greedy, on the model's own distribution
  kBestAdjusted,   // greedy, after penalties, bias, allowed ids or kinds
  kDrawByCluster,  // neither filters nor what kBestAdjusted has
  kDrawBounded,    // top_k or min_p tells which clusters count
  kDrawJointly,    // all words of all clusters
};

// The head of a record.
struct SamplingSlot {
  SamplingPath path;
  int32_t last_sampled;  // written by the device; -1 after a row that failed
  int32_t bias_count;
  int32_t banned_count;
  int32_t allowed_count;  // 0: all ids are allowed
  int64_t min_position;   // banned ids hold for tokens before it
  int64_t recent_count;   // ids that were ever put into the ring of recent ones
  int32_t window;         // of the penalties; 0 where they are off
  int32_t top_k;          // 0 = off
  int32_t follows_kinds;  // 1: as the kind of the last recent id has it
  uint64_t seed;
  double temperature, top_p, min_p, typical_p;
  double repetition_penalty, presence_penalty, frequency_penalty;
};

// Records, one behind the other. Behind the head of each:
//   double  biases[limits.biases]
//   int32_t bias_ids[limits.biases]  ids in [0, V), all different
//   int32_t banned[limits.banned]
//   int32_t recent[limits.recent]    ids in [0, V); the n-th id that was put in
//   at index n mod
//                                    limits.recent; the device adds what it
//                                    samples
//   int32_t allowed[limits.allowed]  ids in [0, V), all different
struct SamplingSlots {
  unsigned char* records = nullptr;  // aligned to 16
  SamplingLimits limits;

  TXL_ANYWHERE int64_t record_bytes() const {
    const int64_t bytes =
        static_cast<int64_t>(sizeof(SamplingSlot)) +
        int64_t{limits.biases} * static_cast<int64_t>(sizeof(double)) +
        int64_t{limits.total()} * static_cast<int64_t>(sizeof(int32_t));
    return (bytes + 15) / 16 * 16;
  }
  TXL_ANYWHERE SamplingSlot* slot(int32_t index) const {
    return reinterpret_cast<SamplingSlot*>(records + index * record_bytes());
  }
  TXL_ANYWHERE double* biases(int32_t index) const {
    return reinterpret_cast<double*>(slot(index) + 1);
  }
  TXL_ANYWHERE int32_t* bias_ids(int32_t index) const {
    return reinterpret_cast<int32_t*>(biases(index) + limits.biases);
  }
  TXL_ANYWHERE int32_t* banned(int32_t index) const {
    return bias_ids(index) + limits.biases;
  }
  TXL_ANYWHERE int32_t* recent(int32_t index) const {
    return banned(index) + limits.banned;
  }
  TXL_ANYWHERE int32_t* allowed(int32_t index) const {
    return recent(index) + limits.recent;
  }
};

// Whether the device can sample with these parameters: it knows every filter
// that is on, the lists fit, and the vocabulary has at most kMaxSampledClusters
// clusters. If not, the turn fails (SamplingStepRunner). REQUIRES: valid
// params.
bool SampledOnDevice(const SamplingParams& params, int64_t banned_ids,
                     const VocabularyBins& bins, const SamplingLimits& limits);

struct SlotContext {
  absl::Span<const int32_t> recent_ids;  // as SampleContext's
  absl::Span<const int32_t> banned_ids;
  int64_t min_position = 0;
};
// Writes the record of slot `index` in memory of the host.
// REQUIRES: SampledOnDevice.
void FillSamplingSlot(const SamplingParams& params, const SlotContext& context,
                      const SamplingSlots& slots, int32_t index);

}  // namespace txl::cuda
