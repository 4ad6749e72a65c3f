#include "model/base/large_vector.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <new>
#include <numeric>
#include <utility>

namespace txl {
namespace {

// Small ones, those of many pages, and what lies between them.
const size_t kSizes[] = {1, 4095, 2 * kHugePage - 1, 2 * kHugePage,
                         2 * kHugePage + 4097};

TEST(LargeVectorTest, KeepsItsElementsAsItGrows) {
  LargeVector<uint8_t> numbers;
  for (const size_t size : kSizes) {
    const size_t before = numbers.size();
    numbers.resize(size);
    for (size_t i = before; i < size; ++i) {
      numbers[i] = static_cast<uint8_t>(i * 7);
    }
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_EQ(numbers[i], static_cast<uint8_t>(i * 7)) << i;
  }
}

TEST(LargeVectorTest, CopiesAndMovesAsAVectorDoes) {
  for (const size_t size : kSizes) {
    LargeVector<int32_t> first(size);
    std::iota(first.begin(), first.end(), 0);
    const int32_t* const at = first.data();
    const LargeVector<int32_t> copy = first;
    const LargeVector<int32_t> moved = std::move(first);
    EXPECT_EQ(moved.data(), at);
    EXPECT_NE(copy.data(), at);
    EXPECT_EQ(copy, moved);
  }
}

TEST(LargeVectorTest, GivenValuesAreThere) {
  for (const size_t size : kSizes) {
    const LargeVector<uint8_t> sevens(size, 7);
    EXPECT_EQ(std::accumulate(sevens.begin(), sevens.end(), uint64_t{0}),
              7 * uint64_t{size});
  }
}

TEST(LargeVectorTest, WhatThereIsNoRoomForIsBadAlloc) {
  LargeAllocator<uint8_t> allocator;
  EXPECT_THROW(allocator.allocate(std::numeric_limits<int64_t>::max()),
               std::bad_alloc);
}

}  // namespace
}  // namespace txl
