#pragma once

// Embeddings of a step's tokens (adaptive input, arXiv:1809.10853): the rows of
// one bin's table at a time.

#include <cstdint>

#include "model/base/beat_positions.h"
#include "model/cuda/device/numbers.h"
#include "model/cuda/device/runtime.h"

namespace txl::cuda {

// The words of a bin among a step's tokens.
template <typename T>
struct BinWords {
  int rows = 0;
  const int32_t* tokens = nullptr;  // [rows]
  int32_t begin = 0;                // ids of the bin: [begin, end)
  int32_t end = 0;
  const T* table = nullptr;  // [end - begin, stride]
  int64_t stride = 0;        // a multiple of 64
};

// found[r] = the token's row of the table; zeros for a token of another bin.
// found: [rows, stride].
template <typename T>
void LaunchFindWords(Stream& stream, const BinWords<T>& words, T* found);

// The rows of beat and bar that a model with beat positions adds
// (BeatPositions), arrays on the device.
struct BeatRows {
  BeatPositions positions;
  const int32_t* ticks = nullptr;  // [rows], >= 0
  const float* beat = nullptr;  // [bar_ticks, stride]; null: nothing is added
  const float* bar = nullptr;   // [bars, stride]
};

// y[r] = (add[r] + the token's row of the table) * scale + the rows of beat and
// bar, without the token's row for a token of another bin and where the bin is
// empty.
template <typename T>
struct AddWordsArgs {
  BinWords<T> words;
  const float* add = nullptr;  // [rows, stride]; null: nothing
  float scale = 1;
  float* wide = nullptr;  // [rows, stride]; may be add
  T* narrow = nullptr;    // [rows, stride], rounded; or null
  BeatRows beats = {};
};

template <typename T>
void LaunchAddWords(Stream& stream, const AddWordsArgs<T>& args);

}  // namespace txl::cuda
