#include <cstring>

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

// Eight numbers.
struct MatrixRow {
  uint16_t bits[8];
};

void Load(uint32_t (&out)[4], const void* row, bool turned) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) {
    emulator::Fail("a matrix row that is not aligned");
  }
  if (!emulator::IsShared(row, 16)) {
    emulator::Fail("a matrix row that is not in shared memory");
  }
  // What the rows hold, not where they are: all lanes read at once, before any
  // goes on and writes.
  MatrixRow mine;
  std::memcpy(&mine, row, sizeof(mine));
  const auto* rows = emulator::Exchange(&mine, sizeof(mine));
  const int g = Lane() / 4;
  const int t = Lane() % 4;
  for (int i = 0; i < 4; ++i) {
    const auto element = [&](int r, int c) {
      MatrixRow there;
      std::memcpy(&there, rows[i * 8 + r], sizeof(there));
      return static_cast<uint32_t>(there.bits[c]);
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
  const int g = Lane() / 4;
  const int t = Lane() % 4;
  // The two rows of a and the two columns of b that this lane needs, from the
  // four lanes each that have them.
  float rows[2][16];
  float columns[2][16];
  for (int owner = 0; owner < 4; ++owner) {
    const Fragments of_row = Of(all[g * 4 + owner]);
    for (int i = 0; i < 2; ++i) {
      const Fragments of_column = Of(all[(2 * t + i) * 4 + owner]);
      for (int k = 0; k < 4; ++k) {
        const int at = 2 * owner + k % 2 + k / 2 * 8;
        rows[i][at] = Half<T>(of_row.a[i + k / 2 * 2], k % 2);
        columns[i][at] = Half<T>(of_column.b[k / 2], k % 2);
      }
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 16; ++k) c[i] += rows[i / 2][k] * columns[i % 2][k];
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
