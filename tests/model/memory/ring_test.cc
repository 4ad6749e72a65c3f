#include "model/memory/ring.h"

#include <map>
#include <ostream>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using ::testing::ElementsAre;

TEST(RingGeometry, APositionsRowIsFoundByItsRemainder) {
  const RingGeometry ring = {.mem_len = 4, .spare = 8, .window = 5};
  EXPECT_EQ(ring.capacity(), 12);
  EXPECT_EQ(ring.IndexOf(0), 0);
  EXPECT_EQ(ring.IndexOf(11), 11);
  EXPECT_EQ(ring.IndexOf(12), 0);
  EXPECT_EQ(ring.IndexOf(int64_t{12} * 1'000'000'000 + 5), 5);
}

TEST(RingGeometry, RowsBeforeTheStartHaveAPlaceToo) {
  const RingGeometry ring = {
      .mem_len = 4, .spare = 8, .window = 5, .zero_start = true};
  EXPECT_EQ(ring.first_position(), -4);
  EXPECT_EQ(ring.IndexOf(-1), 11);
  EXPECT_EQ(ring.IndexOf(-4), 8);
}

TEST(RingGeometry, AnEmptyStartSeesNothingBeforeTheFirstToken) {
  const RingGeometry ring = {.mem_len = 4, .spare = 8, .window = 5};
  EXPECT_EQ(ring.OldestVisible(0), 0);
  EXPECT_EQ(ring.OldestVisible(4), 0);
  EXPECT_EQ(ring.OldestVisible(5), 1);
}

TEST(RingGeometry, AZeroStartSeesTheZeroRows) {
  const RingGeometry ring = {
      .mem_len = 4, .spare = 8, .window = 5, .zero_start = true};
  EXPECT_EQ(ring.OldestVisible(0), -4);
  EXPECT_EQ(ring.OldestVisible(3), -1);
}

TEST(RingGeometry, ANarrowWindowHidesRowsThatMemoryHolds) {
  const RingGeometry ring = {.mem_len = 19, .spare = 8, .window = 12};
  EXPECT_EQ(ring.OldestVisible(30), 19);
}

TEST(RingDistances, TheQueryItselfIsAtDistanceZero) {
  const RingGeometry ring = {.mem_len = 2, .spare = 2, .window = 3};
  EXPECT_THAT(RingDistances(ring, 0, 0), ElementsAre(0, -1, -1, -1));
  EXPECT_THAT(RingDistances(ring, 5, 5), ElementsAre(1, 0, -1, 2));
}

TEST(RingDistances, RowsAfterTheQueryAreHidden) {
  const RingGeometry ring = {.mem_len = 2, .spare = 2, .window = 3};
  // Positions 5 and 6 are in the same step; 4, 5 see no 6.
  EXPECT_THAT(RingDistances(ring, 5, 6), ElementsAre(1, 0, -1, 2));
}

TEST(RingDistances, RowsThatANewerOneReplacedAreGone) {
  const RingGeometry ring = {.mem_len = 2, .spare = 2, .window = 3};
  // Row 7 lies where row 3 was.
  EXPECT_THAT(RingDistances(ring, 5, 7), ElementsAre(1, 0, -1, -1));
}

struct RingCase {
  RingGeometry ring;
  int64_t rows_per_step;
};

std::ostream& operator<<(std::ostream& out, const RingCase& c) {
  return out << "M" << c.ring.mem_len << " S" << c.ring.spare << " W"
             << c.ring.window << (c.ring.zero_start ? " zeros" : " empty")
             << " step " << c.rows_per_step;
}

class RingReplay : public testing::TestWithParam<RingCase> {};

// A ring that is really written, one step after the other: what a query may
// see by the rule of the paper must still be there, at its distance.
TEST_P(RingReplay, EveryVisibleRowIsInTheRingAtItsDistance) {
  const auto& [ring, step] = GetParam();
  std::map<int64_t, int64_t> written;  // index -> position
  for (int64_t t = ring.first_position(); t < 0; ++t) {
    written[ring.IndexOf(t)] = t;
  }
  for (int64_t begin = 0; begin < 60; begin += step) {
    const int64_t newest = begin + step - 1;
    for (int64_t t = begin; t <= newest; ++t) written[ring.IndexOf(t)] = t;
    for (int64_t t = begin; t <= newest; ++t) {
      std::set<int64_t> expected;
      for (int64_t s = t - ring.window + 1; s <= t; ++s) {
        if (s >= (ring.zero_start ? -ring.mem_len : 0)) expected.insert(s);
      }
      const std::vector<int64_t> distances = RingDistances(ring, t, newest);
      ASSERT_EQ(static_cast<int64_t>(distances.size()),
                ring.mem_len + ring.spare);
      std::set<int64_t> seen;
      for (size_t i = 0; i < distances.size(); ++i) {
        if (distances[i] < 0) continue;
        const int64_t position = t - distances[i];
        ASSERT_EQ(written.at(static_cast<int64_t>(i)), position)
            << "t " << t << " newest " << newest;
        seen.insert(position);
      }
      ASSERT_EQ(seen, expected) << "t " << t << " newest " << newest;
    }
  }
}

// A step that is thrown away has overwritten no row that the next one needs.
TEST_P(RingReplay, ADiscardedStepHidesNothingOfTheCommittedState) {
  const auto& [ring, step] = GetParam();
  for (int64_t committed = 0; committed < 40; ++committed) {
    const std::vector<int64_t> clean =
        RingDistances(ring, committed, committed);
    const std::vector<int64_t> after =
        RingDistances(ring, committed, committed + step - 1);
    EXPECT_EQ(clean, after) << committed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, RingReplay,
    testing::Values(
        RingCase{{.mem_len = 5, .spare = 8, .window = 6}, 1},
        RingCase{{.mem_len = 5, .spare = 8, .window = 6}, 8},
        RingCase{{.mem_len = 5, .spare = 8, .window = 6, .zero_start = true},
                 4},
        RingCase{{.mem_len = 16, .spare = 8, .window = 16}, 5},
        RingCase{{.mem_len = 16, .spare = 9, .window = 17, .zero_start = true},
                 9},
        RingCase{{.mem_len = 19, .spare = 8, .window = 12}, 3},
        RingCase{{.mem_len = 0, .spare = 8, .window = 1}, 8},
        RingCase{{.mem_len = 1, .spare = 8, .window = 1, .zero_start = true},
                 2}));

}  // namespace
}  // namespace txl
