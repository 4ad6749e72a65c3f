#include "model/cpu/tile_product.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

// A test without tiles defines these two, and the intrinsics, for itself.
#ifndef TXL_TILES
// For functions of tiles and of the vectors that finish them.
#define TXL_TILES __attribute__((target("amx-tile,amx-int8,avx512f")))
// GCC's intrinsic says that it reads the first eight bytes only.
#define TXL_SHAPE_TILES(shapes) __asm__ volatile("ldtilecfg %0" ::"m"(shapes))
#endif

namespace txl {
namespace {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileColumns = 16;  // numbers of 32 bits
constexpr int64_t kTileInputs = 64;
constexpr int64_t kLineBytes = 64;

// What LDTILECFG reads: palette 1 has eight tiles.
struct alignas(64) TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Sixteen numbers; the compilers' own vectors.
using Words = int32_t __attribute__((vector_size(64)));
using Floats = float __attribute__((vector_size(64)));

template <typename Vector>
TXL_TILES Vector Load(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}
TXL_TILES Floats LoadWords(const void* from) {
  return __builtin_convertvector(Load<Words>(from), Floats);
}
template <typename Vector>
TXL_TILES void Store(const Vector& vector, float* to) {
  std::memcpy(to, &vector, sizeof(vector));
}

// The rows that this thread's tiles were last shaped for; 0: none is in use.
thread_local int64_t shaped = 0;

// Sets the heights of this thread's tiles for a block of 1 to 32 rows:
//   tiles 0, 1 and 4: its first sixteen rows
//   tiles 2, 3 and 5: its other rows, or the same as above if there are none
//   tiles 6 and 7:    sixteen, for the other factor
// The thread keeps them, because LDTILECFG takes longer than a small product.
TXL_TILES void Shape(int64_t rows) {
  if (shaped == rows) return;
  const int64_t first = std::min(rows, kTileRows);
  const int64_t second = rows > kTileRows ? rows - kTileRows : first;
  TileShapes shapes;
  for (const int tile : {0, 1, 4}) {
    shapes.rows[tile] = static_cast<uint8_t>(first);
  }
  for (const int tile : {2, 3, 5}) {
    shapes.rows[tile] = static_cast<uint8_t>(second);
  }
  TXL_SHAPE_TILES(shapes);
  shaped = rows;
}

TXL_TILES void ClearSums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

// The inputs behind the last whole 64 of the panel and of some rows, padded
// with zeros.
struct Rest {
  alignas(64) int8_t a[2 * kTileRows * kTileInputs];
  alignas(64) int8_t b[kTileInputs * kPanel];
};

// Rows [row, row + rows) of a product, at most two tiles of them.
struct RowsOfTiles {
  int64_t row = 0;
  int64_t rows = 0;
};

// Inputs [k, k + 64) of some rows and of the panel.
struct Inputs {
  const int8_t* a = nullptr;
  int64_t a_stride = 0;
  const int8_t* b = nullptr;
};

// Bytes between two quads of inputs of the panel.
int64_t QuadStride(const IntegerProduct& p) { return p.columns * kQuad; }

int64_t WholeInputs(const IntegerProduct& p) {
  return p.k / kTileInputs * kTileInputs;
}

void CopyRest(const IntegerProduct& p, const RowsOfTiles& at, Rest& rest) {
  const int64_t whole = WholeInputs(p);
  const int64_t count = p.k - whole;
  if (count == 0) return;
  std::memset(&rest, 0, sizeof(rest));
  for (int64_t r = 0; r < at.rows; ++r) {
    std::memcpy(rest.a + r * kTileInputs,
                p.a.data + (at.row + r) * p.a.stride + whole, count);
  }
  std::memcpy(rest.b, p.b + whole * p.columns, count * p.columns);
}

Inputs InputsAt(const IntegerProduct& p, const RowsOfTiles& at,
                const Rest& rest, int64_t k) {
  if (k == WholeInputs(p)) return {rest.a, kTileInputs, rest.b};
  return {p.a.data + at.row * p.a.stride + k, p.a.stride, p.b + k * p.columns};
}

TXL_TILES void PrefetchLines(const int8_t* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kLineBytes) {
    _mm_prefetch(reinterpret_cast<const char*>(from + i), _MM_HINT_T0);
  }
}

// Prefetches some columns of the inputs that are used two steps after
// [k, k + 64). Behind the panel's end that is the next panel. If the product
// names what comes next, the same share of it is prefetched instead.
TXL_TILES void Prefetch(const IntegerProduct& p, int64_t k, int64_t column,
                        int64_t columns) {
  if (p.next != nullptr) {
    return PrefetchLines(static_cast<const int8_t*>(p.next) +
                             (k * p.columns + column * kTileInputs) / 2,
                         columns * kTileInputs / 2);
  }
  const int8_t* ahead =
      p.b + (k + 2 * kTileInputs) * p.columns + column * kQuad;
  for (int64_t quad = 0; quad < kTileInputs / kQuad; ++quad) {
    PrefetchLines(ahead + quad * QuadStride(p), columns * kQuad);
  }
}

// The sums of up to two tiles of rows. They do not go to `out` directly: its
// rows may be a multiple of 4 KiB apart, and so share a set of the first cache.
struct alignas(64) ProductSums {
  int32_t rows[2 * kTileRows][kPanel];
};
constexpr int64_t kSumsStride = kPanel * int64_t{sizeof(int32_t)};

// At most sixteen rows: four tiles of sums, all columns.
TXL_TILES void MultiplyOneTile(const IntegerProduct& p, const RowsOfTiles& at,
                               ProductSums& sums) {
  ClearSums();
  Rest rest;
  CopyRest(p, at, rest);
  const int64_t stride = QuadStride(p);
  for (int64_t k = 0; k < p.k; k += kTileInputs) {
    const Inputs in = InputsAt(p, at, rest, k);
    if (at.row == 0) Prefetch(p, k, 0, p.columns);
    _tile_loadd(4, in.a, in.a_stride);
    _tile_loadd(6, in.b, stride);
    _tile_dpbssd(0, 4, 6);
    if (p.columns <= 16) continue;
    _tile_loadd(7, in.b + 64, stride);
    _tile_dpbssd(1, 4, 7);
    if (p.columns <= 32) continue;
    _tile_loadd(6, in.b + 128, stride);
    _tile_dpbssd(2, 4, 6);
    if (p.columns <= 48) continue;
    _tile_loadd(7, in.b + 192, stride);
    _tile_dpbssd(3, 4, 7);
  }
  _tile_stored(0, sums.rows[0], kSumsStride);
  _tile_stored(1, sums.rows[0] + 16, kSumsStride);
  _tile_stored(2, sums.rows[0] + 32, kSumsStride);
  _tile_stored(3, sums.rows[0] + 48, kSumsStride);
}

// Seventeen to 32 rows: two by two tiles of sums, 32 columns at a time.
TXL_TILES void MultiplyTwoTiles(const IntegerProduct& p, const RowsOfTiles& at,
                                ProductSums& sums) {
  Rest rest;
  CopyRest(p, at, rest);
  const int64_t stride = QuadStride(p);
  for (int64_t column = 0; column < p.columns; column += 2 * kTileColumns) {
    const bool two = column + kTileColumns < p.columns;
    ClearSums();
    for (int64_t k = 0; k < p.k; k += kTileInputs) {
      const Inputs in = InputsAt(p, at, rest, k);
      const int8_t* b = in.b + column * kQuad;
      if (at.row == 0) Prefetch(p, k, column, (1 + two) * kTileColumns);
      _tile_loadd(4, in.a, in.a_stride);
      _tile_loadd(6, b, stride);
      _tile_dpbssd(0, 4, 6);
      if (two) {
        _tile_loadd(7, b + 64, stride);
        _tile_dpbssd(1, 4, 7);
      }
      _tile_loadd(5, in.a + kTileRows * in.a_stride, in.a_stride);
      _tile_dpbssd(2, 5, 6);
      if (two) _tile_dpbssd(3, 5, 7);
    }
    int32_t* above = sums.rows[0] + column;
    int32_t* below = sums.rows[kTileRows] + column;
    _tile_stored(0, above, kSumsStride);
    _tile_stored(1, above + 16, kSumsStride);
    _tile_stored(2, below, kSumsStride);
    _tile_stored(3, below + 16, kSumsStride);
  }
}

// Adds the sums of earlier pieces, which are in `out`. The last piece is scaled
// with the vectors' order of operations, for the same bits.
TXL_TILES void FinishRows(const IntegerProduct& p, const RowsOfTiles& at,
                          const ProductSums& sums) {
  for (int64_t r = 0; r < at.rows; ++r) {
    float* out = p.out + (at.row + r) * p.out_stride;
    const float scale = p.a.rows[(at.row + r) * p.a.rows_stride].scale;
    for (int64_t c = 0; c < p.columns; c += kTileColumns) {
      Words sum = Load<Words>(sums.rows[r] + c);
      if (p.goes_on) sum += Load<Words>(out + c);
      if (p.ends) {
        const Floats both = scale * Load<Floats>(p.b_scales + c);
        Store(__builtin_convertvector(sum, Floats) * both, out + c);
      } else {
        Store(sum, out + c);
      }
    }
  }
}

// Sums of a tile's values with the upper and with the lower halves of weights.
struct alignas(64) SumTile {
  int32_t high[kTileRows][kTileColumns];
  int32_t low[kTileRows][kTileColumns];
};

// Either has 24 bits at most, as SumIntegers says.
TXL_TILES void FinishSums(const IntegerSum& p, const RowsOfTiles& at,
                          int64_t column, const SumTile& sums) {
  for (int64_t r = 0; r < at.rows; ++r) {
    const Floats sum =
        LoadWords(sums.high[r]) * 256.0f + LoadWords(sums.low[r]);
    Store(sum * p.scales[at.row + r],
          p.out + (at.row + r) * p.out_stride + column);
  }
}

// Columns [column, column + 32), or the last 16.
TXL_TILES void SumTiles(const IntegerSum& p, const RowsOfTiles& at,
                        int64_t column) {
  const bool two = column + kTileColumns < p.columns;
  const int64_t value_stride = p.columns * kQuad;
  ClearSums();
  for (int64_t panel = 0; panel < p.panels; ++panel) {
    const int64_t first = at.row * p.stride + panel * kPanel;
    const int8_t* values = p.tiles[panel] + column * kQuad;
    _tile_loadd(4, p.high + first, p.stride);
    _tile_loadd(6, values, value_stride);
    _tile_dpbusd(0, 4, 6);
    _tile_loadd(5, p.low + first, p.stride);
    _tile_dpbusd(1, 5, 6);
    if (!two) continue;
    _tile_loadd(7, values + kTileColumns * kQuad, value_stride);
    _tile_dpbusd(2, 4, 7);
    _tile_dpbusd(3, 5, 7);
  }
  SumTile sums;
  _tile_stored(0, sums.high, kLineBytes);
  _tile_stored(1, sums.low, kLineBytes);
  FinishSums(p, at, column, sums);
  if (!two) return;
  _tile_stored(2, sums.high, kLineBytes);
  _tile_stored(3, sums.low, kLineBytes);
  FinishSums(p, at, column + kTileColumns, sums);
}

struct Permission {
  bool granted = false;
  std::string refusal;
};

Permission AskForTiles() {
  constexpr unsigned kTileBits = 3u << 24;  // AMX-TILE and AMX-INT8
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return {};
  if ((edx & kTileBits) != kTileBits) return {};
  // Linux, Documentation/arch/x86/xstate.rst.
  constexpr long kAskForFeature = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  if (syscall(SYS_arch_prctl, kAskForFeature, kTileData) == 0)
    return {true, ""};
  return {false, absl::StrCat("arch_prctl refuses the tiles of AMX: ",
                              std::strerror(errno))};
}

const Permission& Tiles() {
  static const auto* const permission = new Permission(AskForTiles());
  return *permission;
}

}  // namespace

bool HasTiles() { return Tiles().granted; }

const std::string& TilesRefusal() { return Tiles().refusal; }

TXL_TILES void MultiplyOnTiles(const IntegerProduct& product) {
  ProductSums sums;
  for (int64_t row = 0; row < product.rows; row += 2 * kTileRows) {
    const RowsOfTiles at = {row, std::min(2 * kTileRows, product.rows - row)};
    Shape(at.rows);
    if (at.rows <= kTileRows) {
      MultiplyOneTile(product, at, sums);
    } else {
      MultiplyTwoTiles(product, at, sums);
    }
    FinishRows(product, at, sums);
  }
}

TXL_TILES void SumOnTiles(const IntegerSum& sum) {
  for (int64_t row = 0; row < sum.rows; row += kTileRows) {
    const RowsOfTiles at = {row, std::min(kTileRows, sum.rows - row)};
    Shape(at.rows);
    for (int64_t column = 0; column < sum.columns; column += 2 * kTileColumns) {
      SumTiles(sum, at, column);
    }
  }
}

TXL_TILES void ReleaseTiles() {
  if (shaped == 0) return;
  _tile_release();
  shaped = 0;
}

}  // namespace txl

#else

namespace txl {

bool HasTiles() { return false; }
const std::string& TilesRefusal() {
  static const auto* const none = new std::string();
  return *none;
}
void MultiplyOnTiles(const IntegerProduct&) {}
void SumOnTiles(const IntegerSum&) {}
void ReleaseTiles() {}

}  // namespace txl

#endif
