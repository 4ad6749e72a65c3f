#include "model/cuda/kernels/attention.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/model/cuda/kernels/attention_case.h"

namespace txl::cuda {
namespace {

// Random shapes of each pair of formats.
#if defined(TXL_DEVICE_TEST)
constexpr int kAnyShapes = 200;
#else
constexpr int kAnyShapes = 4;
#endif

template <typename Query, typename Row>
struct Formats {
  using Q = Query;
  using M = Row;
};

template <typename F>
class AttentionTest : public ::testing::Test {
 protected:
  void Expect(const AttentionShape& shape) {
    ExpectAttention<typename F::Q, typename F::M>(shape);
  }
};
using AllFormats = ::testing::Types<Formats<float, float>, Formats<float, Bf16>,
                                    Formats<float, F16>, Formats<Bf16, Bf16>,
                                    Formats<F16, F16>>;
TYPED_TEST_SUITE(AttentionTest, AllFormats);

TYPED_TEST(AttentionTest, OneRowOnOneTile) {
  AttentionShape shape;
  shape.slots = {0};
  shape.positions = {31};
  shape.window = 32;
  this->Expect(shape);
}

TYPED_TEST(AttentionTest, AFirstPositionSeesItselfAlone) {
  AttentionShape shape;
  shape.slots = {1, 0};
  shape.positions = {0, 1};
  shape.heads = 3;
  for (const int splits : {1, 2}) {
    shape.splits = splits;
    this->Expect(shape);
  }
}

TYPED_TEST(AttentionTest, MemoryOfAZeroStartLiesAtNegativePositions) {
  AttentionShape shape;
  shape.first_position = -40;
  shape.window = 41;
  shape.slots = {0, 1, 2};
  shape.positions = {0, -40, 7};
  shape.heads = 2;
  shape.splits = 2;
  this->Expect(shape);
}

// A ring of three tiles, written over and over; windows begin anywhere.
TYPED_TEST(AttentionTest, RingsThatWrapped) {
  AttentionShape shape;
  shape.window = 60;
  shape.slots = {0, 1, 2, 3};
  shape.positions = {95, 96, 1000, 12345678901};
  shape.splits = 3;
  this->Expect(shape);
}

TYPED_TEST(AttentionTest, RowsOfOneSlotSeeNothingBehindThemselves) {
  AttentionShape shape;
  shape.window = 20;
  shape.capacity = 64;
  shape.slots = {0, 0, 0, 0};
  shape.positions = {30, 31, 32, 33};
  shape.heads = 5;
  this->Expect(shape);
}

TYPED_TEST(AttentionTest, RowsWithoutSlotAreLeftAlone) {
  AttentionShape shape;
  shape.slots = {-1, 2, -1};
  shape.positions = {5, 50, -1};
  for (const int splits : {1, 2}) {
    shape.splits = splits;
    this->Expect(shape);
  }
}

TYPED_TEST(AttentionTest, PositionsFarAwayShareOneScore) {
  AttentionShape shape;
  shape.slots = {0};
  shape.positions = {70};
  shape.window = 65;
  for (const int distances : {1, 31, 65}) {
    shape.distances = distances;
    this->Expect(shape);
  }
}

TYPED_TEST(AttentionTest, MoreSplitsThanAYoungSessionHasTiles) {
  AttentionShape shape;
  shape.window = 200;
  shape.capacity = 256;
  shape.slots = {0, 1, 2};
  shape.positions = {3, 64, 199};
  shape.splits = AttentionTiles(shape.window);
  this->Expect(shape);
}

TYPED_TEST(AttentionTest, ScoresThatDifferByMoreThanAnExponentialCanHold) {
  AttentionShape shape;
  shape.position_range = 3000;
  shape.window = 64;
  shape.slots = {0};
  shape.positions = {63};
  shape.heads = 4;
  for (const int splits : {1, 2}) {
    shape.splits = splits;
    this->Expect(shape);
  }
}

TYPED_TEST(AttentionTest, AnyShape) {
  std::mt19937 random(7);
  const auto up_to = [&](int most) {
    return static_cast<int>(random() % most) + 1;
  };
  for (int i = 0; i < kAnyShapes; ++i) {
    AttentionShape shape;
    shape.seed = i + 2;
    shape.width = up_to(300);
    shape.stride = (shape.width + 63) / 64 * 64;
    shape.heads = up_to(9);
    shape.window = up_to(100);
    shape.capacity = (shape.window + 8 + 31) / 32 * 32;
    shape.distances = up_to(110);
    shape.splits = up_to(AttentionTiles(shape.window));
    if (i % 2 == 0) shape.first_position = 1 - shape.window;
    const int rows = up_to(3);
    for (int r = 0; r < rows; ++r) {
      shape.slots.push_back(rows - 1 - r);
      shape.positions.push_back(up_to(400) - 1);
    }
    this->Expect(shape);
  }
}

template <typename M>
class MatrixAttentionTest : public ::testing::Test {};
using MatrixFormats = ::testing::Types<Bf16, F16>;
TYPED_TEST_SUITE(MatrixAttentionTest, MatrixFormats);

// Warps with 32, 64 and 128 columns; some of them with fewer, some with none.
TYPED_TEST(MatrixAttentionTest, RowsOfAnyWidth) {
  for (const int64_t width : {192, 257, 410, 640, 1024}) {
    AttentionShape shape;
    shape.width = width;
    shape.stride = (width + 63) / 64 * 64;
    shape.slots = {0};
    shape.positions = {40};
    shape.heads = 16;
    ExpectAttention<TypeParam, TypeParam>(shape);
  }
}

TYPED_TEST(MatrixAttentionTest, MoreHeadsThanABlockTakes) {
  AttentionShape shape;
  shape.slots = {0};
  shape.positions = {40};
  for (const int heads : {15, 17, 33}) {
    shape.heads = heads;
    ExpectAttention<TypeParam, TypeParam>(shape);
  }
}

// Pairs begin at even positions; what is left over at both ends goes alone.
TYPED_TEST(MatrixAttentionTest, APromptsRowsGoTwoByTwo) {
  AttentionShape shape;
  shape.heads = 17;
  shape.window = 50;
  shape.slots = {0, 0, 0, 0, 0, 0, 1, 1, 2};
  shape.positions = {61, 62, 63, 64, 65, 66, 0, 1, 2};
  for (const int splits : {1, 2, 3}) {
    shape.splits = splits;
    ExpectAttention<TypeParam, TypeParam>(shape);
  }
}

// The later row sees nothing of the first tile, which may be a split's only
// one.
TYPED_TEST(MatrixAttentionTest, APairWhoseOldestPositionsHaveTwoTiles) {
  AttentionShape shape;
  shape.heads = 3;
  shape.slots = {0, 0};
  for (const int64_t window : {2, 6, 38, 70}) {
    shape.window = window;
    shape.positions = {94 + window, 95 + window};
    shape.capacity = 192;
    shape.first_position = -200;
    ASSERT_EQ((shape.positions[0] - window + 1) % kRingTile, kRingTile - 1);
    ASSERT_EQ(shape.positions[0] % 2, 0);
    for (int splits = 1; splits <= AttentionTiles(window); ++splits) {
      shape.splits = splits;
      ExpectAttention<TypeParam, TypeParam>(shape);
    }
  }
}

TYPED_TEST(MatrixAttentionTest, PairsOfAnyWidthAndNegativePositions) {
  for (const int64_t width : {192, 410, 1024}) {
    AttentionShape shape;
    shape.width = width;
    shape.stride = (width + 63) / 64 * 64;
    shape.first_position = -40;
    shape.slots = {0, 0, 0, 0};
    shape.positions = {-2, -1, 0, 1};
    shape.heads = 16;
    ExpectAttention<TypeParam, TypeParam>(shape);
  }
}

TYPED_TEST(MatrixAttentionTest, PairedRowsHaveTheBitsOfRowsAlone) {
  AttentionShape shape;
  shape.heads = 5;
  shape.width = 192;
  shape.stride = 192;
  shape.window = 80;
  shape.capacity = 128;
  shape.slots = {0, 0};
  for (const int64_t position : {10, 94, 110, 1000}) {
    shape.positions = {position, position + 1};
    const AttentionCase<TypeParam, TypeParam> attention(shape);
    const std::vector<TypeParam> both = attention.Run();
    const auto first = attention.RunWithSlots({0, -1});
    const auto second = attention.RunWithSlots({-1, 0});
    const size_t row = both.size() / 2;
    for (size_t i = 0; i < both.size(); ++i) {
      ASSERT_EQ(both[i].bits, (i < row ? first : second)[i].bits) << i;
    }
  }
}

// More and fewer tiles than there is room for in shared memory.
TYPED_TEST(MatrixAttentionTest, AsMuchSharedMemoryAsThereIs) {
  AttentionShape shape;
  shape.capacity = 192;
  shape.slots = {0, 1, 1};
  shape.positions = {5, 1000, 1001};
  shape.window = 150;
  for (int stages = 2; stages < 7; ++stages) {
    // A tile has 16 KiB; what else is there takes less than 36.
    shape.shared_bytes = static_cast<size_t>(stages) * (16 << 10) + (35 << 10);
    ASSERT_TRUE(HasMatrixAttention(shape.stride, shape.shared_bytes));
    ExpectAttention<TypeParam, TypeParam>(shape);
  }
}

}  // namespace
}  // namespace txl::cuda
