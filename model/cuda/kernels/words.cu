#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/group.h"
#include "model/cuda/kernels/words.h"

namespace txl::cuda {
namespace {

// Where the token of row r lies in the table; null: in another bin.
template <typename T>
TXL_DEVICE const T* WordRow(const BinWords<T>& words, int64_t r) {
  const int32_t token = words.tokens[r];
  if (token < words.begin || token >= words.end) return nullptr;
  return words.table + (token - words.begin) * words.stride;
}

// Adds to numbers [k, k + 4) of row r.
TXL_DEVICE void AddBeats(const BeatRows& beats, int32_t token, int64_t r,
                         int64_t stride, int64_t k, Four<float>& y) {
  const int32_t ticks = TicksOf(token, beats.positions, beats.ticks[r]);
  const int64_t beat = BeatRow(beats.positions, ticks);
  const int64_t bar = BarRow(beats.positions, ticks);
  const Four<float> a = LoadGroup<4>(beats.beat + beat * stride + k);
  const Four<float> b = LoadGroup<4>(beats.bar + bar * stride + k);
  for (int j = 0; j < kElementsEach; ++j) y.x[j] += a.x[j] + b.x[j];
}

// kVector numbers per thread.
template <typename T>
TXL_KERNEL_OF(kElementThreads)
FindWords(BinWords<T> words, T* found) {
  AwaitEarlierKernels();
  const int64_t i = FirstElement();
  if (i >= words.rows * words.stride) return;
  const int64_t r = i / words.stride;
  const T* row = WordRow(words, r);
  Four<float> out;
  if (row != nullptr) out = LoadGroup<4>(row + (i - r * words.stride));
  StoreGroup(found + i, out);
}

template <typename T>
TXL_KERNEL_OF(kElementThreads)
AddWords(AddWordsArgs<T> args) {
  AwaitEarlierKernels();
  const int64_t i = FirstElement();
  if (i >= args.words.rows * args.words.stride) return;
  const int64_t r = i / args.words.stride;
  const T* row = WordRow(args.words, r);
  Four<float> y;
  if (args.add != nullptr) y = LoadGroup<4>(args.add + i);
  if (row != nullptr) {
    const Four<float> word = LoadGroup<4>(row + (i - r * args.words.stride));
    for (int k = 0; k < kElementsEach; ++k) y.x[k] += word.x[k];
  }
  for (int k = 0; k < kElementsEach; ++k) y.x[k] *= args.scale;
  if (args.beats.beat != nullptr) {
    const int64_t stride = args.words.stride;
    AddBeats(args.beats, args.words.tokens[r], r, stride, i - r * stride, y);
  }
  StoreGroup(args.wide + i, y);
  if (args.narrow != nullptr) StoreGroup(args.narrow + i, y);
}

}  // namespace

template <typename T>
void LaunchFindWords(Stream& stream, const BinWords<T>& words, T* found) {
  Launch(stream, ElementShape(words.rows * words.stride), FindWords<T>, words,
         found);
}

template <typename T>
void LaunchAddWords(Stream& stream, const AddWordsArgs<T>& args) {
  Launch(stream, ElementShape(args.words.rows * args.words.stride), AddWords<T>,
         args);
}

template void LaunchFindWords(Stream&, const BinWords<float>&, float*);
template void LaunchFindWords(Stream&, const BinWords<Bf16>&, Bf16*);
template void LaunchFindWords(Stream&, const BinWords<F16>&, F16*);
template void LaunchAddWords(Stream&, const AddWordsArgs<float>&);
template void LaunchAddWords(Stream&, const AddWordsArgs<Bf16>&);
template void LaunchAddWords(Stream&, const AddWordsArgs<F16>&);

}  // namespace txl::cuda
