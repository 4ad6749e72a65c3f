#pragma once

// The next token of a step's rows, on the device: the definition of
// model/sampling/sampler.h on the same float log-probabilities, every parameter
// of it. Sums are in double precision, in a fixed order that differs from the
// CPU's (by thread, warp and block, instead of by id), and exp may differ in
// its last bit: so the token is the CPU's except where a draw or a border hits
// the boundary between two words to within such rounding, about 1e-13 of the
// probability. No word is sorted and no memory taken: borders are found by
// cutting the range of keys (sampling_border.h), one block per row.
//
// Clusters of an adaptive softmax are evaluated as far as rows need them, with
// no word from the host. With R = `rounds`, 0 without clusters, else 1 or more,
// a step queues
//
//   the heads of all rows, normalised
//   LaunchSampling(round 0)   decides what the head alone decides, and which
//                             clusters each other row needs
//   for k = 1..R:
//     for every cluster c: its words for the rows lists.rows[c][i] with
//       lists.begin[c] <= i < lists.end[c], sizes that are read on the device;
//       those of number i go to words[c].logprobs + i * stride
//     LaunchSampling(round k)
//
// after which no row is open. A launch does nothing for rows that are done.
// Which clusters a row needs:
//   temperature 0 without penalties and bias, and top_k, or min_p alone: at
//     round 0 those whose mass reaches the best word of the head, the k-th best
//     one, or what min_p keeps
//   allowed ids: at round 0 those that hold one
//   other filters, kinds, penalties, bias: at round 0 all
//   none of these (cluster-first draw): the one that is drawn, and when that is
//     refused, which only happens at other temperatures than 1 or with bans,
//     the next that is drawn. Before the last round such a row asks for all
//     that it might still draw. So one round is enough for any row; more
//     rounds, up to the number of clusters, evaluate less.
//   a target, and named ids: their clusters
// The CPU asks for a little less at times; so it is a NaN in the words that the
// row itself asked for that makes it kNotFinite. What becomes of a row depends
// on its own numbers only.

#include <cstdint>

#include "model/cuda/device/runtime.h"
#include "model/cuda/kernels/rows.h"
#include "model/cuda/kernels/sampling_slots.h"
#include "model/sampling/token_kinds.h"

namespace txl::cuda {

inline constexpr int kMaxTopLogprobs = 20;
inline constexpr int kMaxNamedIds = 20;
// Words that a row reports at most.
inline constexpr int kMaxReported = kMaxTopLogprobs + kMaxNamedIds;
inline constexpr int kSamplingThreads = 512;

enum class SampleStatus : int32_t {
  kUnused,  // a row of no slot
  kOpen,    // needs another round
  kOk,
  kNotFinite,    // a log-probability that was looked at is NaN or +inf
  kNothingLeft,  // no token has a probability above 0
};

// Memory that the launches of a step share; nothing of it outlives the step.
struct SamplingRowState {
  SampleStatus status;
  uint32_t known;   // clusters that are evaluated, a bit for each
  uint32_t need;    // asked for in the last round
  uint32_t wanted;  // clusters that the token depends on, once that is known
  uint32_t top_wanted;  // clusters that the best words can be in
  int32_t drawn;        // cluster that was drawn and is not decided on; or -1
  uint32_t draws;       // random numbers used
  uint32_t exact;       // clusters whose `mass` is exact, not a bound
  double mass[kMaxSampledClusters];  // T log(weight) in the cluster-first draw
};
// A word whose log-probability the row's parameters change.
struct AdjustedWord {
  double logprob;
  float original;
  int32_t count;  // in the window of penalties
};
struct SamplingWork {
  SamplingRowState* states = nullptr;  // [count]
  AdjustedWord* adjusted = nullptr;    // [count, slots.limits.total()]
  int* finished_blocks = nullptr;      // [1], 0 before the first launch ever
};

// Rows that need the words of a cluster, in ascending order within a round.
// Arrays on the device, written by LaunchSampling.
struct ClusterLists {
  int32_t* rows = nullptr;   // [clusters, count]
  int32_t* place = nullptr;  // [clusters, count]: of a row in its list
  int32_t* begin = nullptr;  // [clusters]: the last round's part of each list
  int32_t* end = nullptr;    // [clusters]
};

// log P(word) of a cluster's words for the rows of its list, not log P(word |
// cluster).
struct ClusterWords {
  float* logprobs = nullptr;  // [places, stride]
  int64_t stride = 0;
};

struct SamplingArgs {
  // Rows whose next token is asked for: that of position[r] + 1. No two rows
  // that sample have the same slot.
  StepRows rows;
  // [count]; >= 0: an id to score, nothing is sampled. Null: all rows sample.
  const int32_t* targets = nullptr;
  // [count], 0..kMaxTopLogprobs. Null: 0 and no named ids, with fewer launches.
  const int32_t* top_counts = nullptr;
  // Id number i of row r at named[i * named_stride + r], kMaxNamedIds of each
  // row; those from the first -1 on do not exist. Null: none.
  const int32_t* named = nullptr;
  int64_t named_stride = 0;
  // Ends of the vocabulary's bins, as VocabularyBins.
  int clusters = 0;
  int32_t ends[kMaxSampledClusters + 1] = {};
  // log P of the words of bin 0, then of the clusters: [count, head_stride].
  // A launch changes words of it and of `words` while it runs.
  float* head = nullptr;
  int64_t head_stride = 0;
  ClusterWords words[kMaxSampledClusters];
  SamplingSlots slots;
  // The model's kinds of tokens (model/sampling/token_kinds.h): of each id,
  // [V], and the rules, [kNoTokenKind + 1]. Null: no slot follows kinds.
  const uint8_t* kinds = nullptr;
  const KindRule* rules = nullptr;
  SamplingWork work;
  ClusterLists lists;
  int round = 0;
  int rounds = 0;  // R
  // Results: the token (-1 unless kOk; a target's row its target), log P of it
  // in the model's own distribution, and the best words, best first, equal ones
  // by id, NaN left out; behind them the named words; ids behind the last are
  // -1.
  int32_t* tokens = nullptr;         // [count]
  float* logprobs = nullptr;         // [count]
  SampleStatus* statuses = nullptr;  // [count]
  int32_t* top_ids = nullptr;        // [count, kMaxReported]
  float* top_logprobs = nullptr;     // [count, kMaxReported]
  int threads = kSamplingThreads;    // of a block; one block per row
};

// A sampled token also goes into its slot's record: `last_sampled`, and the
// ring of recent ids. Takes no memory and waits for nothing.
// REQUIRES: rows.count >= 1; 0 <= round <= rounds; clusters as
// SampledOnDevice; rounds >= 1 where there are clusters.
void LaunchSampling(Stream& stream, const SamplingArgs& args);

}  // namespace txl::cuda
