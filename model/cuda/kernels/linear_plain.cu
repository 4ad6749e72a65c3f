// Products in float32 without tensor cores, which would round their operands.

#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/linear.h"
#include "model/cuda/kernels/linear_epilogue.h"

namespace txl::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kSide = 16;  // threads are kSide rows times kSide outputs
constexpr int kOutputsEach = 4;
constexpr int kOutputs = kSide * kOutputsEach;
constexpr int kInputs = 32;  // of a stage
constexpr int kChunks = kInputs / 4;
// Rows of a stage lie so that 8 neighbours' 16 bytes fall into all banks.
constexpr int kPitch = kInputs + 4;
constexpr int kStages = 4;
static_assert(kLinearUnit % kInputs == 0 && kLinearUnit % kOutputs == 0);

template <int kRowsEach>
inline constexpr int kStageNumbers = (kSide * kRowsEach + kOutputs) * kPitch;

// Rows of x, then rows of w, from input k on.
template <int kRowsEach>
TXL_DEVICE void CopyStage(float* stage, const LinearArgs<float>& args,
                          const RowSpan& span, int b, int k) {
  constexpr int kRows = kSide * kRowsEach;
  const int first_row = BlockY() * kRows;
  const float* x = args.x + b * args.x_batch + k;
  const float* w =
      args.w +
      (static_cast<int64_t>(b) * args.outputs + BlockX() * kOutputs) *
          args.inputs +
      k;
  const int chunk = Thread() % kChunks * 4;
  for (int i = Thread() / kChunks; i < kRows + kOutputs;
       i += kThreads / kChunks) {
    const int r = first_row + i;
    const bool valid = i >= kRows || r < span.end;
    const float* from = i >= kRows
                            ? w + static_cast<int64_t>(i - kRows) * args.inputs
                            : x + (valid ? r : 0) * args.x_stride;
    CopyLater16(stage + i * kPitch + chunk, from + chunk, valid);
  }
}

template <int kRowsEach>
TXL_DEVICE void MultiplyStage(const float* stage,
                              float (&sums)[kRowsEach][kOutputsEach]) {
  const float* x = stage + Thread() / kSide * kPitch;
  const float* w = stage + (kSide * kRowsEach + Thread() % kSide) * kPitch;
  for (int k = 0; k < kInputs; k += 4) {
    Four<float> a[kRowsEach];
    Four<float> c[kOutputsEach];
    for (int i = 0; i < kRowsEach; ++i) {
      a[i] = LoadGroup<4>(x + i * kSide * kPitch + k);
    }
    for (int j = 0; j < kOutputsEach; ++j) {
      c[j] = LoadGroup<4>(w + j * kSide * kPitch + k);
    }
    for (int e = 0; e < 4; ++e) {
      for (int i = 0; i < kRowsEach; ++i) {
        for (int j = 0; j < kOutputsEach; ++j) {
          sums[i][j] += a[i].x[e] * c[j].x[e];
        }
      }
    }
  }
}

// Stores by way of shared memory, so that a thread stores neighbours.
template <int kRowsEach>
TXL_DEVICE void StoreAll(const LinearArgs<float>& args, const RowSpan& span,
                         const SplitPlace& place,
                         const float (&sums)[kRowsEach][kOutputsEach]) {
  constexpr int kRowPitch = kOutputs + 4;
  constexpr int kRows = kSide * kRowsEach;
  static_assert(kRows * kRowPitch <= kStages * kStageNumbers<kRowsEach>);
  float* shared = reinterpret_cast<float*>(SharedMemory());
  BlockBarrier();  // the stages are no longer read
  for (int i = 0; i < kRowsEach; ++i) {
    for (int j = 0; j < kOutputsEach; ++j) {
      const int r = i * kSide + Thread() / kSide;
      shared[r * kRowPitch + j * kSide + Thread() % kSide] = sums[i][j];
    }
  }
  BlockBarrier();
  constexpr int kGroups = kOutputs / 4;
  for (int i = Thread(); i < kRows * kGroups; i += kThreads) {
    const int r = BlockY() * kRows + i / kGroups;
    const int n = i % kGroups * 4;
    if (!span.Contains(r)) continue;
    StoreSums(args, place.split, {place.b, r, BlockX() * kOutputs + n},
              LoadGroup<4>(shared + i / kGroups * kRowPitch + n));
  }
}

template <int kRowsEach>
TXL_KERNEL_OF(kThreads)
PlainLinear(LinearArgs<float> args) {
  AwaitEarlierKernels();
  const RowSpan span = SpanOf(args.range, args.rows);
  constexpr int kRows = kSide * kRowsEach;
  if (!span.Meets(BlockY() * kRows, kRows)) return;
  const SplitPlace place = PlaceOfBlock(args);
  float* stages = reinterpret_cast<float*>(SharedMemory());
  const int first = place.first * kLinearUnit;
  const int count = (place.last - place.first) * (kLinearUnit / kInputs);
  const auto copy = [&](int i) {
    if (i < count) {
      CopyStage<kRowsEach>(stages + i % kStages * kStageNumbers<kRowsEach>,
                           args, span, place.b, first + i * kInputs);
    }
    CloseCopies();
  };
  for (int i = 0; i < kStages - 1; ++i) copy(i);
  float sums[kRowsEach][kOutputsEach] = {};
  for (int i = 0; i < count; ++i) {
    FinishCopies<kStages - 2>();
    // Everybody is done with the stage that is filled next, too.
    BlockBarrier();
    copy(i + kStages - 1);
    MultiplyStage<kRowsEach>(stages + i % kStages * kStageNumbers<kRowsEach>,
                             sums);
  }
  FinishCopies<0>();
  StoreAll<kRowsEach>(args, span, place, sums);
}

template <int kRowsEach>
void LaunchWith(Stream& stream, const LinearArgs<float>& args) {
  constexpr int kRows = kSide * kRowsEach;
  const GridShape grid = {args.outputs / kOutputs,
                          (args.rows + kRows - 1) / kRows,
                          args.batch * args.splits};
  constexpr size_t kShared = kStages * kStageNumbers<kRowsEach> * sizeof(float);
  Launch(stream, {grid, kThreads, kShared}, PlainLinear<kRowsEach>, args);
}

}  // namespace

void LaunchPlainLinear(Stream& stream, const LinearArgs<float>& args) {
  if (args.rows <= kSide) {
    LaunchWith<1>(stream, args);
  } else {
    LaunchWith<4>(stream, args);
  }
}

}  // namespace txl::cuda
