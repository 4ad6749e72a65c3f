// The products on tiles, on processors without them: their instructions are
// plain loops here, as the Intel 64 and IA-32 Architectures Software
// Developer's Manual, volume 2, describes them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>

#include "tests/model/cpu/integer_cases.h"

#if defined(__x86_64__) && defined(__linux__)

#include <immintrin.h>

namespace txl {
namespace {

// One thread's eight tiles.
class EmulatedTiles {
 public:
  // Palette 1 of LDTILECFG.
  void Shape(const void* configuration) {
    const auto* bytes = static_cast<const uint8_t*>(configuration);
    ASSERT_EQ(bytes[0], 1);
    for (int tile = 0; tile < 8; ++tile) {
      uint16_t row_bytes = 0;
      std::memcpy(&row_bytes, bytes + 16 + 2 * tile, sizeof(row_bytes));
      tiles_[tile] = {bytes[48 + tile], row_bytes, {}};
      ASSERT_LE(tiles_[tile].rows, 16);
      ASSERT_LE(tiles_[tile].row_bytes, 64);
    }
  }
  void Zero(int tile) { std::memset(tiles_[tile].data, 0, 16 * 64); }
  void Load(int tile, const void* from, int64_t stride) {
    Zero(tile);
    for (int64_t r = 0; r < tiles_[tile].rows; ++r) {
      std::memcpy(tiles_[tile].data[r],
                  static_cast<const int8_t*>(from) + r * stride,
                  tiles_[tile].row_bytes);
    }
  }
  void Store(int tile, void* to, int64_t stride) const {
    for (int64_t r = 0; r < tiles_[tile].rows; ++r) {
      std::memcpy(static_cast<int8_t*>(to) + r * stride, tiles_[tile].data[r],
                  tiles_[tile].row_bytes);
    }
  }
  // out += a b, four numbers of 8 bits at a time; A: type of a's numbers.
  template <typename A>
  void AddProduct(int out, int a, int b) {
    ASSERT_EQ(tiles_[out].rows, tiles_[a].rows);
    ASSERT_EQ(tiles_[a].row_bytes, 4 * tiles_[b].rows);
    for (int64_t r = 0; r < tiles_[out].rows; ++r) {
      for (int64_t c = 0; c < tiles_[out].row_bytes / 4; ++c) {
        int32_t sum = 0;
        std::memcpy(&sum, tiles_[out].data[r] + 4 * c, sizeof(sum));
        for (int64_t k = 0; k < tiles_[a].row_bytes; ++k) {
          sum += static_cast<A>(tiles_[a].data[r][k]) *
                 tiles_[b].data[k / 4][4 * c + k % 4];
        }
        std::memcpy(tiles_[out].data[r] + 4 * c, &sum, sizeof(sum));
      }
    }
  }

 private:
  struct Tile {
    int64_t rows = 0;
    int64_t row_bytes = 0;
    int8_t data[16][64];
  };
  Tile tiles_[8];
};

EmulatedTiles emulated;

}  // namespace
}  // namespace txl

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbssd
#undef _tile_dpbusd
#define _tile_loadd(tile, from, stride) emulated.Load(tile, from, stride)
#define _tile_stored(tile, to, stride) emulated.Store(tile, to, stride)
#define _tile_zero(tile) emulated.Zero(tile)
#define _tile_dpbssd(out, a, b) emulated.AddProduct<int8_t>(out, a, b)
#define _tile_dpbusd(out, a, b) emulated.AddProduct<uint8_t>(out, a, b)
#define _tile_release() emulated = {}
#define TXL_TILES
#define TXL_SHAPE_TILES(shapes) emulated.Shape(&(shapes))
// Vectors of 64 bytes, passed without AVX-512.
#pragma GCC diagnostic ignored "-Wpsabi"
#include "model/cpu/tile_product.cc"

namespace txl {
namespace {

TEST(EmulatedTilesTest, ProductsAreExactSumsTimesScales) {
  std::mt19937 random(1);
  for (const int64_t columns : {16, 32, 48, 64}) {
    for (const int64_t rows : {1, 8, 15, 16, 17, 31, 32, 33, 64}) {
      for (const int64_t k : {4, 60, 64, 68, 128, 300}) {
        ExpectPlainProducts(MultiplyOnTiles, {rows, k, columns}, random);
      }
    }
  }
}

TEST(EmulatedTilesTest, SumsOfValuesAreExact) {
  std::mt19937 random(2);
  for (const int64_t rows : {1, 4, 15, 16, 17, 40}) {
    for (const int64_t columns : {16, 32, 48, 64, 80, 128}) {
      ExpectPlainSums(SumOnTiles, {rows, 1, columns}, random);
      ExpectPlainSums(SumOnTiles, {rows, 8, columns}, random);
    }
  }
}

// Between two pieces along k, `out` holds the sums.
TEST(EmulatedTilesTest, APieceGoesOnWhereTheLastOneEnded) {
  std::mt19937 random(3);
  for (const int64_t rows : {9, 35}) {
    const IntegerOperands operands({rows, 192, 32}, random);
    std::vector<float> out(rows * kPanel, 99);
    for (int64_t k = 0; k < 192; k += 96) {
      IntegerProduct piece = operands.Product(out);
      piece.a.data += k;
      piece.b += k * piece.columns;
      piece.k = 96;
      piece.goes_on = k > 0;
      piece.ends = k > 0;
      MultiplyOnTiles(piece);
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < 32; ++c) {
        ASSERT_EQ(out[r * kPanel + c], operands.Expected(r, c)) << r;
      }
    }
  }
  ReleaseTiles();
}

}  // namespace
}  // namespace txl

#endif
