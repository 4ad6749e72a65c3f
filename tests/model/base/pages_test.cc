#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <new>
#include <numeric>

#include "model/base/host_memory.h"

namespace txl {
namespace {

TEST(PagesTest, AreZeroedAndOfAnySize) {
  for (const size_t size : {size_t{1}, size_t{4097}, kHugePage + 1}) {
    auto* const pages = static_cast<uint8_t*>(MapPages(size));
    EXPECT_EQ(std::accumulate(pages, pages + size, 0), 0);
    pages[size - 1] = 1;
    UnmapPages(pages, size);
  }
}

TEST(PagesTest, WhatThereIsNoRoomForIsBadAlloc) {
  EXPECT_THROW(MapPages(std::numeric_limits<int64_t>::max()), std::bad_alloc);
}

}  // namespace
}  // namespace txl
