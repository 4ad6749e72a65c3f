#include "model/cuda/device/launch.h"
#include "model/cuda/kernels/vectors.h"
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

// kVector numbers per thread.
template <typename T>
TXL_KERNEL_OF(kVectorThreads)
FindWords(BinWords<T> words, T* found) {
  const int64_t i = VectorIndex();
  if (i >= words.rows * words.stride) return;
  const int64_t r = i / words.stride;
  const T* row = WordRow(words, r);
  Vector<T> out{};
  if (row != nullptr) out = LoadVector(row + (i - r * words.stride));
  StoreVector(found + i, out);
}

template <typename T>
TXL_KERNEL_OF(kVectorThreads)
AddWords(AddWordsArgs<T> args) {
  const int64_t i = VectorIndex();
  if (i >= args.words.rows * args.words.stride) return;
  const int64_t r = i / args.words.stride;
  const T* row = WordRow(args.words, r);
  Vector<float> y{};
  if (args.add != nullptr) y = LoadVector(args.add + i);
  if (row != nullptr) {
    const Vector<T> word = LoadVector(row + (i - r * args.words.stride));
    for (int k = 0; k < kVector; ++k) y.at[k] += Widen(word.at[k]);
  }
  for (int k = 0; k < kVector; ++k) y.at[k] *= args.scale;
  StoreVector(args.wide + i, y);
  if (args.narrow != nullptr) StoreNarrow(args.narrow + i, y);
}

}  // namespace

template <typename T>
void LaunchFindWords(Stream& stream, const BinWords<T>& words, T* found) {
  Launch(stream, VectorShape(words.rows * words.stride), FindWords<T>, words,
         found);
}

template <typename T>
void LaunchAddWords(Stream& stream, const AddWordsArgs<T>& args) {
  Launch(stream, VectorShape(args.words.rows * args.words.stride), AddWords<T>,
         args);
}

template void LaunchFindWords(Stream&, const BinWords<float>&, float*);
template void LaunchFindWords(Stream&, const BinWords<Bf16>&, Bf16*);
template void LaunchFindWords(Stream&, const BinWords<F16>&, F16*);
template void LaunchAddWords(Stream&, const AddWordsArgs<float>&);
template void LaunchAddWords(Stream&, const AddWordsArgs<Bf16>&);
template void LaunchAddWords(Stream&, const AddWordsArgs<F16>&);

}  // namespace txl::cuda
