#pragma once

// What a pickle may ask for. Real files stay far below: the pickle of a model
// has some thousand values, that of a vocabulary of a million words needs a
// third of the memory.

#include <cstddef>
#include <cstdint>

namespace txl {

// Memory of the values of one pickle, and of the plain data made of them.
inline constexpr size_t kMaxPickleMemoryBytes = size_t{384} << 20;
inline constexpr size_t kMaxPlainDataBytes = size_t{256} << 20;
// Plain data repeats what a pickle shares; it may be this much larger than the
// pickle, plus a constant for small ones.
inline constexpr size_t kPlainDataPerPickleByte = 64;
inline constexpr size_t kPlainDataFreeBytes = 1 << 20;
inline constexpr uint64_t kMaxPickleOpcodes = 100'000'000;
inline constexpr uint64_t kMaxPickleStringBytes = uint64_t{256} << 20;
// A number or a name in a text opcode.
inline constexpr uint64_t kMaxPickleLineBytes = 1 << 16;
inline constexpr int kMaxPlainDataDepth = 200;
inline constexpr size_t kMaxTensorNameBytes = 4096;

}  // namespace txl
