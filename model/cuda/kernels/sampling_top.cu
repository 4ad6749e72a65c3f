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

// The row's named id number i; -1: it does not exist.
TXL_DEVICE int32_t NamedId(const SamplingBlockRow& row, int i) {
  if (row.args.named == nullptr || i >= kMaxNamedIds) return -1;
  return row.args.named[i * row.args.named_stride + row.row];
}

TXL_DEVICE uint32_t NamedClusters(const SamplingBlockRow& row) {
  uint32_t clusters = 0;
  for (int i = 0; NamedId(row, i) >= 0; ++i) {
    const int32_t id = NamedId(row, i);
    clusters |= ClustersOf(row, &id, 1);
  }
  return clusters;
}

// `asks`: for named words, too.
TXL_DEVICE void WriteTop(const SamplingBlockRow& row, int found, bool asks) {
  const RankedWord* list = row.scratch.border.list;
  const int64_t first = int64_t{row.row} * kMaxReported;
  for (int i = Thread(); i < kMaxReported; i += Threads()) {
    if (i >= found) {
      const int32_t id = asks ? NamedId(row, i - found) : -1;
      row.args.top_ids[first + i] = id;
      if (id < 0) continue;
      row.args.top_logprobs[first + i] = *FindWord(row.words, row.all(), id);
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
  const bool named = row.slot != nullptr && NamedId(row, 0) >= 0;
  const bool asks = (count > 0 || named) &&
                    (!reports || args.statuses[row.row] == SampleStatus::kOk);
  Ranking ranking;
  ranking.counts_impossible = true;
  Rank last;
  if (asks) {
    const bool has_clusters = reports && args.rounds > 0;
    Open(row, has_clusters ? state.top_wanted : 0);
    if (count > 0) last = FindLast(row, ranking, count);
  }
  if (reports) {
    WriteTop(row, asks && count > 0 ? ListTop(row, ranking, last) : 0, asks);
    return;
  }
  if (Thread() != 0) return;
  const bool is_limit = last.key == Rank().key;  // fewer words
  const double bound = is_limit ? kImpossible : LogprobOf(last);
  state.top_wanted = asks && count > 0 ? ClustersFrom(row, bound) : 0;
  if (named) state.top_wanted |= NamedClusters(row);
}

}  // namespace

void LaunchFindTopClusters(Stream& stream, const SamplingArgs& args) {
  Launch(stream, SamplingShape(args), TopOfRows, args, false);
}

void LaunchReportTop(Stream& stream, const SamplingArgs& args) {
  Launch(stream, SamplingShape(args), TopOfRows, args, true);
}

}  // namespace txl::cuda
