#include "model/cpu/aligned_buffer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <utility>

namespace txl {
namespace {

// Sizes on both sides of what is mapped.
constexpr int64_t kSizes[] = {1, 15, 1000, (4 << 20) - 1, 4 << 20, 9 << 20};

TEST(AlignedBuffer, IsAlignedZeroedAndAsLargeAsAskedFor) {
  for (const int64_t size : kSizes) {
    AlignedBuffer<uint8_t> buffer(size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
    EXPECT_EQ(buffer[0], 0);
    EXPECT_EQ(buffer[size - 1], 0);
    buffer[size - 1] = 7;
    EXPECT_EQ(buffer.data()[size - 1], 7);
  }
}

TEST(AlignedBuffer, AnEmptyOneHasNoMemory) {
  EXPECT_EQ(AlignedBuffer<float>().data(), nullptr);
  EXPECT_EQ(AlignedBuffer<float>(0).data(), nullptr);
}

TEST(AlignedBuffer, MovesItsMemory) {
  AlignedBuffer<float> from(5 << 20);
  float* const memory = from.data();
  from[3] = 2;
  AlignedBuffer<float> to = std::move(from);
  EXPECT_EQ(to.data(), memory);
  EXPECT_EQ(to[3], 2);
}

TEST(AlignedBuffer, MoreThanThereIsThrows) {
  EXPECT_THROW(AlignedBuffer<float>(int64_t{1} << 55), std::bad_alloc);
}

}  // namespace
}  // namespace txl
