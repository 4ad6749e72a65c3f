#include "model/cuda/kernels/row_range.h"

#include <gtest/gtest.h>

namespace txl::cuda {
namespace {

RowSpan Span(int32_t begin, int32_t end, int rows) {
  return SpanOf({&begin, &end}, rows);
}

TEST(RowRangeTest, WithoutOneAllRowsCount) {
  const RowSpan span = SpanOf({}, 7);
  EXPECT_EQ(span.begin, 0);
  EXPECT_EQ(span.end, 7);
}

TEST(RowRangeTest, IsCutToTheRowsThatThereAre) {
  EXPECT_EQ(Span(-3, 99, 7).begin, 0);
  EXPECT_EQ(Span(-3, 99, 7).end, 7);
  EXPECT_EQ(Span(2, 5, 7).begin, 2);
  EXPECT_EQ(Span(2, 5, 7).end, 5);
}

TEST(RowRangeTest, ContainsItsRowsAndMeetsBlocksThatHaveOne) {
  for (int begin = 0; begin < 6; ++begin) {
    for (int end = 0; end < 6; ++end) {
      const RowSpan span = Span(begin, end, 5);
      for (int first = 0; first < 8; first += 2) {
        bool meets = false;
        for (int r = first; r < first + 2; ++r) {
          const bool expected = begin <= r && r < end && r < 5;
          EXPECT_EQ(span.Contains(r), expected);
          meets |= expected;
        }
        EXPECT_EQ(span.Meets(first, 2), meets)
            << begin << " to " << end << ", block from " << first;
      }
    }
  }
}

}  // namespace
}  // namespace txl::cuda
