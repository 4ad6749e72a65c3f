#include "model/base/beat_positions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace txl {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// musicautobot's own: xxbos 0, xxmask 4, xxsep 8, notes from 9 on, durations
// from 137 on.
constexpr BeatPositions kMusic = {8, 137, 4, 0, 32, 1024};
constexpr int32_t kBegin = 0, kPad = 1, kMask = 4, kWait = 8, kNote = 60;
constexpr int32_t Duration(int32_t ticks) { return 137 + ticks; }

std::vector<int32_t> Ticks(const std::vector<int32_t>& ids) {
  return TicksBefore(kMusic, ids);
}

// position_enc of musicautobot's transform.py, as its array operations say it:
// a duration behind a separator moves all from the place after it on, where
// there is such a place. Rows are then pos mod 32 and pos / 32 mod 1024, both
// rounded down.
std::vector<int64_t> PositionEnc(const std::vector<int32_t>& ids) {
  std::vector<int64_t> moved(ids.size());
  for (size_t i = 0; i + 2 < ids.size(); ++i) {
    if (ids[i] != kWait) continue;
    moved[i + 2] = ids[i + 1] == kMask ? 0 : ids[i + 1] - Duration(0);
  }
  for (size_t i = 1; i < moved.size(); ++i) moved[i] += moved[i - 1];
  return moved;
}

TEST(BeatCounterTest, AWaitMovesTheTokensBehindItsDuration) {
  EXPECT_THAT(Ticks({kBegin, kPad, kNote, Duration(4), kWait, Duration(6),
                     kNote, Duration(1), kWait, Duration(3), kNote}),
              ElementsAre(0, 0, 0, 0, 0, 0, 6, 6, 6, 6, 9));
}

TEST(BeatCounterTest, DurationsOfNotesDoNotCount) {
  EXPECT_THAT(Ticks({kNote, Duration(9), kNote, Duration(9), kNote}), Each(0));
}

TEST(BeatCounterTest, AMaskedDurationWaitsForNothing) {
  EXPECT_THAT(Ticks({kWait, Duration(5), kWait, kMask, kNote}),
              ElementsAre(0, 0, 5, 5, 5));
}

// Every piece of the training data has positions of its own.
TEST(BeatCounterTest, ANewPieceCountsFromZeroItsFirstTokenIncluded) {
  EXPECT_THAT(
      Ticks({kWait, Duration(5), kNote, kBegin, kPad, kWait, Duration(2), 9}),
      ElementsAre(0, 0, 5, /*replaced by TicksOf*/ 5, 0, 0, 0, 2));
  EXPECT_EQ(TicksOf(kBegin, kMusic, 5), 0);
  EXPECT_EQ(TicksOf(kNote, kMusic, 5), 5);
  // A wait that the old piece began, or ended with, is the old piece's.
  EXPECT_THAT(Ticks({kWait, kBegin, kNote}), Each(0));
  EXPECT_THAT(Ticks({kBegin, kWait, Duration(7), kBegin, kNote}),
              ElementsAre(0, 0, 0, 7, 0));
}

TEST(BeatCounterTest, TheBarBehindTheLastIsTheFirst) {
  BeatCounter counter(kMusic);
  int64_t ticks = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(counter.ticks(), ticks % (32 * 1024));
    EXPECT_EQ(BeatRow(kMusic, counter.ticks()), ticks % 32);
    EXPECT_EQ(BarRow(kMusic, counter.ticks()), ticks / 32 % 1024);
    counter.Add(kWait);
    counter.Add(Duration(157));
    ticks += 157;
  }
  EXPECT_GT(ticks, 4 * 32 * 1024);
}

// Whatever ids a client sends: no duration counts as the original counts it.
TEST(BeatCounterTest, AnyIdsOfAPieceCountAsPositionEncDoes) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<int32_t> ids = {kBegin};
    for (int i = 0; i < 120; ++i) {
      ids.push_back(random() % 3 == 0 ? kWait : 1 + random() % 311);
    }
    const std::vector<int64_t> expected = PositionEnc(ids);
    const std::vector<int32_t> ticks = Ticks(ids);
    for (size_t i = 0; i < ids.size(); ++i) {
      const int64_t beat = ((expected[i] % 32) + 32) % 32;
      EXPECT_EQ(BeatRow(kMusic, ticks[i]), beat);
      const int64_t bar = (expected[i] - beat) / 32;
      EXPECT_EQ(BarRow(kMusic, ticks[i]), ((bar % 1024) + 1024) % 1024);
    }
  }
}

TEST(BeatCounterTest, ACopyGoesOnFromWhereItWasMade) {
  BeatCounter counter(kMusic);
  for (const int32_t id : {kWait, Duration(3), kNote, kWait}) counter.Add(id);
  BeatCounter copy = counter;
  EXPECT_THAT(copy.AddAll({Duration(4), kNote}), ElementsAre(3, 7));
  EXPECT_EQ(counter.ticks(), 3);
  EXPECT_EQ(copy.ticks(), 7);
}

TEST(BeatCounterTest, ModelsWithoutBeatsHaveZeros) {
  EXPECT_THAT(TicksBefore(std::nullopt, {kWait, Duration(3), kNote}),
              ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace txl
