#include <cstdio>
#include <cstdlib>

#include "model/cuda/device/matrix.h"

namespace txl::cuda {
namespace {

struct Fragments {
  uint32_t a[4];
  uint32_t b[2];
};

template <typename T>
float Half(uint32_t pair, int which) {
  return Widen(T{static_cast<uint16_t>(pair >> (16 * which))});
}

Fragments Of(const unsigned char* given) {
  Fragments fragments;
  std::memcpy(&fragments, given, sizeof(fragments));
  return fragments;
}

const uint16_t* RowOf(const unsigned char* given) {
  const uint16_t* row;
  std::memcpy(&row, given, sizeof(row));
  return row;
}

void Load(uint32_t (&out)[4], const void* row, bool turned) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) {
    std::fprintf(stderr, "emulated kernel: a matrix row is not aligned\n");
    std::abort();
  }
  const auto* rows = emulator::Exchange(&row, sizeof(row));
  const int g = Lane() / 4;
  const int t = Lane() % 4;
  for (int i = 0; i < 4; ++i) {
    const auto element = [&](int r, int c) {
      return static_cast<uint32_t>(RowOf(rows[i * 8 + r])[c]);
    };
    out[i] = turned ? element(2 * t, g) | element(2 * t + 1, g) << 16
                    : element(g, 2 * t) | element(g, 2 * t + 1) << 16;
  }
}

}  // namespace

template <typename T>
void MultiplyAdd(float (&c)[4], const uint32_t (&a)[4],
                 const uint32_t (&b)[2]) {
  const Fragments mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  const auto* all = emulator::Exchange(&mine, sizeof(mine));
  const auto a_at = [&](int row, int k) {
    const Fragments from = Of(all[row % 8 * 4 + k % 8 / 2]);
    return Half<T>(from.a[row / 8 + k / 8 * 2], k % 2);
  };
  const auto b_at = [&](int k, int column) {
    const Fragments from = Of(all[column * 4 + k % 8 / 2]);
    return Half<T>(from.b[k / 8], k % 2);
  };
  const int g = Lane() / 4;
  const int t = Lane() % 4;
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 16; ++k) {
      c[i] += a_at(g + i / 2 * 8, k) * b_at(k, 2 * t + i % 2);
    }
  }
}
template void MultiplyAdd<Bf16>(float (&)[4], const uint32_t (&)[4],
                                const uint32_t (&)[2]);
template void MultiplyAdd<F16>(float (&)[4], const uint32_t (&)[4],
                               const uint32_t (&)[2]);

void LoadMatrices(uint32_t (&out)[4], const void* row) {
  Load(out, row, false);
}
void LoadMatricesTurned(uint32_t (&out)[4], const void* row) {
  Load(out, row, true);
}

}  // namespace txl::cuda
