#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/sampling.h"
#include "model/cuda/kernels/sampling_clusters.h"
#include "model/cuda/kernels/sampling_top.h"

namespace txl::cuda {
namespace {

TXL_DEVICE void LoadState(SamplingBlockRow& row) {
  if (row.args.round == 0) return;
  const SamplingRowState& state = row.args.work.states[row.row];
  row.status = state.status;
  row.known = state.known | state.need;
  row.wanted = state.wanted;
  row.drawn = state.drawn;
  row.draws = state.draws;
  row.exact = state.exact;
  for (int c = Thread(); c < row.args.clusters; c += Threads()) {
    row.scratch.mass[c] = state.mass[c];  // read after Open's barriers
  }
}

TXL_DEVICE void StoreState(const SamplingBlockRow& row) {
  SamplingRowState& state = row.args.work.states[row.row];
  BlockBarrier();
  for (int c = Thread(); c < row.args.clusters; c += Threads()) {
    state.mass[c] = row.scratch.mass[c];
  }
  if (Thread() != 0) return;
  uint32_t need = row.need;
  if (row.args.round == 0 && row.args.top_counts != nullptr) {
    need |= state.top_wanted;
  }
  const bool goes_on =
      row.status == SampleStatus::kOpen || row.status == SampleStatus::kOk;
  state.need = goes_on ? need & ~row.known : 0;
  state.status = row.status;
  state.known = row.known;
  state.wanted = row.wanted;
  state.drawn = row.drawn;
  state.draws = row.draws;
  state.exact = row.exact;
  row.args.statuses[row.row] = row.status;
}

TXL_DEVICE bool HasBadMass(const SamplingBlockRow& row) {
  bool bad = false;
  for (int c = 0; c < row.args.clusters; ++c) bad |= !IsLogprob(row.MassOf(c));
  return bad;
}

// The token, or what it needs. Leaves a view open that holds the token.
TXL_DEVICE void DecideToken(SamplingBlockRow& row) {
  const bool starts = row.args.round == 0;
  const bool is_scored = row.target() >= 0;
  const SamplingPath path = row.slot->path;
  const bool by_cluster = !is_scored && path == SamplingPath::kDrawByCluster;
  const Adjustments lists = AdjustmentsOf(row.args, row.row);
  BlockScratch& scratch = row.scratch.border.block;
  row.words.adjusted = lists.adjusted;
  row.words.only_adjusted = lists.allowed_count > 0;
  if (!is_scored) FollowKinds(row);
  Open(row, starts ? 0 : by_cluster ? row.known : row.wanted);
  bool bad = Adjust(lists, row.words, row.all(), scratch);
  const BestWord best =
      FindBest(row.words, by_cluster ? BinRange{0, 1} : row.all(), scratch);
  bad |= best.bad != 0 || HasBadMass(row);
  if (bad) {
    row.status = SampleStatus::kNotFinite;
  } else if (by_cluster) {
    if (starts) StartClusterDraw(row, lists);
    DrawByCluster(row, best);
  } else {
    // Rows bounded by top_k find their best words on the way to their draw.
    if (starts && (best.id < 0 || !IsBoundedByTopK(row))) {
      row.wanted = WantedClusters(row, best, lists);
    }
    if ((row.wanted & ~row.known) != 0) {
      row.need = row.wanted;
    } else if (is_scored) {
      row.token = row.target();
    } else if (best.id < 0) {
      row.status = SampleStatus::kNothingLeft;
    } else if (path == SamplingPath::kDrawBounded ||
               path == SamplingPath::kDrawJointly) {
      row.token = DrawJointly(row, best);
      if (row.token < 0) row.need = row.wanted;
    } else {
      row.token = best.id;
    }
  }
  Restore(lists, row.words, row.all());
}

// The token is decided: writes it down with its log-probability and puts it
// into its slot.
TXL_DEVICE void ReportToken(SamplingBlockRow& row) {
  const float logprob = *FindWord(row.words, row.all(), row.token);
  if (!IsLogprob(logprob)) {
    row.status = SampleStatus::kNotFinite;
    return;
  }
  row.status = SampleStatus::kOk;
  if (Thread() != 0) return;
  const SamplingArgs& args = row.args;
  args.tokens[row.row] = row.token;
  args.logprobs[row.row] = logprob;
  if (row.target() >= 0) return;
  const int32_t index = args.rows.slot[row.row];
  SamplingSlot* slot = args.slots.slot(index);
  slot->last_sampled = row.token;
  if (args.slots.limits.recent == 0) return;
  args.slots.recent(index)[slot->recent_count % args.slots.limits.recent] =
      row.token;
  ++slot->recent_count;
}

// Reports a row that failed, or is not in use.
TXL_DEVICE void ReportNothing(const SamplingBlockRow& row) {
  if (Thread() != 0) return;
  row.args.tokens[row.row] = -1;
  const int32_t slot = row.args.rows.slot[row.row];
  if (slot >= 0 && row.target() < 0) {
    row.args.slots.slot(slot)->last_sampled = -1;
  }
}

// The last block of the grid: whose rows need which cluster.
TXL_DEVICE void WriteLists(const SamplingArgs& args, BlockScratch& scratch) {
  const ClusterLists& lists = args.lists;
  const int count = args.rows.count;
  for (int c = 0; c < args.clusters; ++c) {
    const int begin = args.round == 0 ? 0 : lists.end[c];
    int end = begin;
    for (int first = 0; first < count; first += Threads()) {
      const int r = first + Thread();
      const bool needs = r < count && (args.work.states[r].need >> c & 1) != 0;
      const PlaceInSum place = BlockRunningSum(needs ? 1 : 0, scratch);
      if (needs) {
        lists.rows[c * count + end + place.before] = r;
        lists.place[c * count + r] = end + place.before;
      }
      end += place.total;
    }
    if (Thread() == 0) {
      lists.begin[c] = begin;
      lists.end[c] = end;
    }
  }
}

TXL_DEVICE bool IsLastBlock(const SamplingArgs& args, RowScratch& scratch) {
  // What the last block reads of this one, the same thread has written.
  if (Thread() == 0) {
    GlobalFence();
    const int before = AtomicAdd(args.work.finished_blocks, 1);
    scratch.is_last_block = before == GridX() - 1 ? 1 : 0;
    if (scratch.is_last_block != 0) *args.work.finished_blocks = 0;
  }
  BlockBarrier();
  GlobalFence();
  return scratch.is_last_block != 0;
}

// One block per row.
TXL_KERNEL_OF(kSamplingThreads) SampleRows(const SamplingArgs args) {
  AwaitEarlierKernels();
  RowScratch& scratch = *reinterpret_cast<RowScratch*>(SharedMemory());
  SamplingBlockRow row = ThisRow(args, scratch);
  LoadState(row);
  const bool is_open = row.status == SampleStatus::kOpen;
  if (row.slot == nullptr) {
    row.status = SampleStatus::kUnused;
  } else if (is_open) {
    DecideToken(row);
    if (row.token >= 0) ReportToken(row);
  }
  const bool succeeds =
      row.status == SampleStatus::kOpen || row.status == SampleStatus::kOk;
  if (is_open && !succeeds) ReportNothing(row);
  StoreState(row);
  if (args.round == args.rounds) return;
  if (IsLastBlock(args, scratch)) WriteLists(args, scratch.border.block);
}

}  // namespace

void LaunchSampling(Stream& stream, const SamplingArgs& args) {
  const bool has_top = args.top_counts != nullptr;
  if (has_top && args.round == 0 && args.rounds > 0) {
    LaunchFindTopClusters(stream, args);
  }
  Launch(stream, SamplingShape(args), SampleRows, args);
  if (has_top && args.round == args.rounds) LaunchReportTop(stream, args);
}

}  // namespace txl::cuda
