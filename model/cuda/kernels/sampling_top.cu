#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/sampling_row.h"
#include "model/cuda/kernels/sampling_top.h"

namespace txl::cuda {
namespace {

// The count-th best word of the view; behind all where there are fewer.
TXL_DEVICE Rank FindLast(const SamplingBlockRow& row, const Ranking& ranking,
                         int count) {
  const KeyRange keys =
      AllKeys(row.words, row.all(), ranking, row.scratch.border);
  if (keys.count < count) return Rank();
  return FindBorder(row.words, row.all(), ranking, keys, count,
                    row.scratch.border);
}

// Lists the words up to `last`, at most kMaxTopLogprobs; returns how many.
TXL_DEVICE int ListTop(const SamplingBlockRow& row, const Ranking& ranking,
                       const Rank& last) {
  if (Thread() == 0) row.scratch.found = 0;
  BlockBarrier();
  ForWords(row.words, row.all(), [&](int32_t id, double logprob) {
    const RankedWord word = ranking.Look(KeyRange(), id, logprob);
    if (word.measure <= 0 || last.IsBefore(word.rank)) return;
    // Words come in any order: they are ordered below.
    row.scratch.border.list[AtomicAdd(&row.scratch.found, 1)] = word;
  });
  BlockBarrier();
  return row.scratch.found;
}

TXL_DEVICE void WriteTop(const SamplingBlockRow& row, int found) {
  const RankedWord* list = row.scratch.border.list;
  const int64_t first = int64_t{row.row} * kMaxTopLogprobs;
  for (int i = Thread(); i < kMaxTopLogprobs; i += Threads()) {
    if (i >= found) {
      row.args.top_ids[first + i] = -1;
      continue;
    }
    int place = 0;
    for (int j = 0; j < found; ++j) {
      place += list[j].rank.IsBefore(list[i].rank) ? 1 : 0;
    }
    row.args.top_ids[first + place] = list[i].rank.id;
    row.args.top_logprobs[first + place] =
        static_cast<float>(LogprobOf(list[i].rank));
  }
}

// One block per row.
TXL_KERNEL_OF(kSamplingThreads)
TopOfRows(const SamplingArgs args, const bool reports) {
  AwaitEarlierKernels();
  RowScratch& scratch = *reinterpret_cast<RowScratch*>(SharedMemory());
  SamplingBlockRow row = ThisRow(args, scratch);
  SamplingRowState& state = args.work.states[row.row];
  const int count = row.slot == nullptr ? 0 : args.top_counts[row.row];
  const bool asks =
      count > 0 && (!reports || args.statuses[row.row] == SampleStatus::kOk);
  Ranking ranking;
  ranking.counts_impossible = true;
  Rank last;
  if (asks) {
    const bool has_clusters = reports && args.rounds > 0;
    Open(row, has_clusters ? state.top_wanted : 0);
    last = FindLast(row, ranking, count);
  }
  if (reports) {
    WriteTop(row, asks ? ListTop(row, ranking, last) : 0);
    return;
  }
  if (Thread() != 0) return;
  const bool is_limit = last.key == Rank().key;  // fewer words
  const double bound = is_limit ? kImpossible : LogprobOf(last);
  state.top_wanted = asks ? ClustersFrom(row, bound) : 0;
}

}  // namespace

void LaunchFindTopClusters(Stream& stream, const SamplingArgs& args) {
  Launch(stream, SamplingShape(args), TopOfRows, args, false);
}

void LaunchReportTop(Stream& stream, const SamplingArgs& args) {
  Launch(stream, SamplingShape(args), TopOfRows, args, true);
}

}  // namespace txl::cuda
