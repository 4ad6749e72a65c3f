#include "server/scheduler/scoring_lanes.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Ids = std::vector<int32_t>;
using Alternatives = std::vector<Ids>;

ScoringLanesOptions After(Ids before, int64_t spare_rows = 100) {
  ScoringLanesOptions options;
  options.root = static_cast<int64_t>(before.size()) - 1;
  options.before = std::move(before);
  options.spare_rows = spare_rows;
  return options;
}

// A device that knows the ids in every slot: a row's result says everything
// that stands before its target, and the target.
class Device {
 public:
  explicit Device(Ids before) {
    for (size_t i = 0; i + 1 < before.size(); ++i)
      slots_[0].push_back(before[i]);
  }
  void Copy(int32_t to) { slots_[to] = slots_[0]; }

  // Runs what `lanes` has to run, `count` rows a step.
  void RunStep(ScoringLanes& lanes, int64_t count) {
    std::vector<StepRow> rows;
    std::vector<int32_t> clear;
    const int64_t planned = lanes.PlanRows(count, rows, clear);
    EXPECT_EQ(planned, static_cast<int64_t>(rows.size()));
    EXPECT_LE(planned, count);
    for (const int32_t slot : clear) slots_[slot].clear();
    std::set<int32_t> seen;
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool goes_on = i > 0 && rows[i].slot == rows[i - 1].slot;
      if (goes_on) {
        EXPECT_EQ(rows[i].position, rows[i - 1].position + 1);
      } else {
        EXPECT_TRUE(seen.insert(rows[i].slot).second);
      }
      if (rows[i].kind == RowKind::kScore) {
        lanes.Collect(Run(rows[i]));
        ++scored_;
      } else {
        Run(rows[i]);
        ++fed_again_;
      }
    }
  }
  void Run(ScoringLanes& lanes, int64_t count) {
    while (lanes.rows_now() > 0) RunStep(lanes, count);
  }
  float Name(const Ids& ids) {
    return static_cast<float>(names_.emplace(ids, names_.size()).first->second);
  }
  int scored() const { return scored_; }
  int fed_again() const { return fed_again_; }

 private:
  float Run(const StepRow& row) {
    Ids& ids = slots_[row.slot];
    const auto position = static_cast<size_t>(row.position);
    EXPECT_LE(position, ids.size());
    ids.resize(position);
    ids.push_back(row.token_id);
    if (row.kind != RowKind::kScore) return 0;
    Ids all = ids;
    all.push_back(row.score_target);
    return Name(all);
  }

  std::map<int32_t, Ids> slots_;
  std::map<Ids, size_t> names_;
  int scored_ = 0;
  int fed_again_ = 0;
};

void ExpectEveryScore(const Ids& before, const Alternatives& alternatives,
                      ScoringLanes& lanes, Device& device) {
  const auto logprobs = lanes.TakeLogprobs();
  ASSERT_EQ(logprobs.size(), alternatives.size());
  for (size_t i = 0; i < alternatives.size(); ++i) {
    ASSERT_EQ(logprobs[i].size(), alternatives[i].size()) << i;
    Ids ids = before;
    for (size_t j = 0; j < alternatives[i].size(); ++j) {
      ids.push_back(alternatives[i][j]);
      const bool known = ids.size() > 1;
      ASSERT_EQ(logprobs[i][j].has_value(), known) << i << ", " << j;
      if (known) {
        EXPECT_EQ(*logprobs[i][j], device.Name(ids)) << i << ", " << j;
      }
    }
  }
}

const Alternatives& Mixed() {
  static const auto& mixed = *new Alternatives{
      {5, 6, 7}, {5, 6}, {1}, {5, 6, 7}, {5, 8, 9, 9}, {5}, {2, 5, 6}};
  return mixed;
}

TEST(UsefulLanes, NeverMoreThanSlotsAlternativesOrRowsOfAStep) {
  EXPECT_EQ(UsefulLanes(100, 100, 2000, 128), 7);  // 7 * 20 >= 128
  EXPECT_EQ(UsefulLanes(3, 100, 2000, 128), 4);
  EXPECT_EQ(UsefulLanes(100, 2, 200, 1000), 2);
  EXPECT_EQ(UsefulLanes(0, 100, 2000, 128), 1);
}

TEST(UsefulLanes, FewRowsAreNotWorthACopy) {
  EXPECT_EQ(UsefulLanes(100, 10, 10, 128), 1);
  EXPECT_EQ(UsefulLanes(100, 10, 33, 128), 2);
  EXPECT_EQ(UsefulLanes(100, 0, 0, 128), 1);
}

TEST(ScoringLanes, WhatBeginsAlikeIsRunOnce) {
  const Ids before = {3, 4};
  Device device(before);
  ScoringLanes lanes(&Mixed(), After(before));
  EXPECT_EQ(lanes.lanes(), 1);
  device.Run(lanes, 100);
  // 1; 2 5 6; 5, 6, 7; 8 9 9
  EXPECT_EQ(device.scored(), 10);
  EXPECT_EQ(device.fed_again(), 0);
  ExpectEveryScore(before, Mixed(), lanes, device);
}

TEST(ScoringLanes, WhatBeginsItsSessionHasNoFirstScore) {
  Device device({});
  ScoringLanes lanes(&Mixed(), After({}));
  device.Run(lanes, 3);
  ExpectEveryScore({}, Mixed(), lanes, device);
  const Alternatives one = {{1}, {2}};
  ScoringLanes nothing(&one, After({}));
  EXPECT_EQ(nothing.rows_now(), 0);
  ExpectEveryScore({}, one, nothing, device);
}

TEST(ScoringLanes, EveryNumberOfLanesAndRowsGivesTheSame) {
  const Ids before = {3, 4, 5};
  for (int extra = 0; extra < 9; ++extra) {
    for (int64_t count = 1; count < 9; ++count) {
      for (int steps_before = 0; steps_before < 4; ++steps_before) {
        Device device(before);
        ScoringLanes lanes(&Mixed(), After(before));
        for (int i = 0; i < steps_before && lanes.rows_now() > 0; ++i) {
          device.RunStep(lanes, count);
        }
        ASSERT_TRUE(lanes.may_copy());
        std::vector<int32_t> slots;
        for (int slot = 1; slot <= extra; ++slot) {
          slots.push_back(slot);
          device.Copy(slot);
        }
        lanes.AddLanes(slots);
        EXPECT_EQ(lanes.lanes(), extra + 1);
        device.Run(lanes, count);
        ExpectEveryScore(before, Mixed(), lanes, device);
      }
    }
  }
}

TEST(ScoringLanes, SlotsThatOthersWantAreGivenBackBetweenAlternatives) {
  const Ids before = {3, 4};
  for (int steps = 0; steps < 8; ++steps) {
    Device device(before);
    ScoringLanes lanes(&Mixed(), After(before));
    device.Copy(1);
    device.Copy(2);
    lanes.AddLanes({1, 2});
    for (int i = 0; i < steps; ++i) device.RunStep(lanes, 2);
    std::set<int32_t> taken;
    for (int i = 0; lanes.rows_now() > 0; ++i) {
      for (const int32_t slot : lanes.TakeSlots(true)) {
        EXPECT_TRUE(taken.insert(slot).second);
      }
      if (lanes.rows_now() > 0) device.RunStep(lanes, 2);
    }
    for (const int32_t slot : lanes.TakeSlots(false)) taken.insert(slot);
    EXPECT_THAT(taken, ElementsAre(1, 2)) << steps;
    EXPECT_THAT(lanes.slots(), IsEmpty());
    ExpectEveryScore(before, Mixed(), lanes, device);
  }
}

TEST(ScoringLanes, ALaneBehindALongAlternativeIsFedAgain) {
  const Ids before = {3, 4, 5, 6};
  const Alternatives longs = {
      {1, 1, 1, 1, 1, 1}, {1, 1, 1, 2}, {7, 7, 7, 7, 7}, {8}, {9, 9}};
  Device device(before);
  ScoringLanes lanes(&longs, After(before, /*spare_rows=*/4));
  device.Run(lanes, 4);
  EXPECT_TRUE(lanes.cleared());
  EXPECT_EQ(device.fed_again(), 2 * 3);
  ExpectEveryScore(before, longs, lanes, device);
}

TEST(ScoringLanes, ASlotBehindALongAlternativeIsNotCopied) {
  const Ids before = {3, 4};
  const Alternatives longs = {{1, 1, 1, 1, 1, 1}, {2, 2}};
  Device device(before);
  ScoringLanes lanes(&longs, After(before, /*spare_rows=*/4));
  EXPECT_TRUE(lanes.may_copy());
  device.RunStep(lanes, 4);
  EXPECT_TRUE(lanes.may_copy());
  device.RunStep(lanes, 4);
  EXPECT_FALSE(lanes.may_copy());
  EXPECT_EQ(lanes.written_end(), 1 + 6);
}

// Ids 1 wait: the id behind one counts itself less ten.
constexpr BeatPositions kLaneBeats = {1, 10, 2, 0, 4, 100};

TEST(ScoringLanes, TicksOfARowCountAllIdsBeforeItInItsAlternative) {
  const Ids session = {1, 17};  // before those that the lanes are fed again
  const Ids before = {20, 1, 13, 21};
  const Alternatives alternatives = {{1, 15, 22, 23, 24}, {1, 12, 30}, {5}};
  for (const int64_t spare_rows : {2, 100}) {
    ScoringLanesOptions options = After(before, spare_rows);
    options.root += std::ssize(session);
    options.counter.emplace(kLaneBeats);
    options.counter->AddAll(session);
    ScoringLanes lanes(&alternatives, std::move(options));
    Ids ids = {session.begin(), session.end()};
    ids.insert(ids.end(), before.begin(), before.end() - 1);
    int rows_seen = 0;
    while (lanes.rows_now() > 0) {
      std::vector<StepRow> rows;
      std::vector<int32_t> clear;
      lanes.PlanRows(100, rows, clear);
      for (const StepRow& row : rows) {
        ids.resize(row.position);
        EXPECT_EQ(row.ticks,
                  [&] {
                    BeatCounter counter(kLaneBeats);
                    for (const int32_t id : ids) counter.Add(id);
                    return counter.ticks();
                  }())
            << row.position << ", spare rows " << spare_rows;
        ids.push_back(row.token_id);
        ++rows_seen;
        if (row.kind == RowKind::kScore) lanes.Collect(0);
      }
    }
    EXPECT_GE(rows_seen, 7);
  }
}

}  // namespace
}  // namespace txl
