#include "server/scheduler/prefix_cache.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using Ids = std::vector<int32_t>;
using Kind = PrefixChoice::Kind;

Ids Range(int32_t first, int32_t count) {
  Ids ids;
  for (int32_t i = 0; i < count; ++i) ids.push_back(first + i);
  return ids;
}

Ids Joined(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

KeptPrompt KeptOf(const Ids& ids, const std::string& tenant = "t") {
  return {
      .tenant = tenant, .ids = ids, .rows = static_cast<int64_t>(ids.size())};
}

KeptPrompt ExactOf(const Ids& ids) {
  KeptPrompt prompt = KeptOf(ids);
  prompt.shortest = prompt.rows;
  return prompt;
}

std::shared_ptr<const StateImage> ImageOf(int64_t bytes = 100) {
  auto image = std::make_shared<StateImage>();
  image->data.resize(static_cast<size_t>(bytes));
  return image;
}

std::shared_ptr<const PrefixScores> ScoresOfIds(int64_t count, size_t top) {
  auto scores = std::make_shared<PrefixScores>();
  for (int64_t i = 0; i < count; ++i) {
    scores->logprobs.push_back(-static_cast<float>(i));
    scores->top_logprobs.emplace_back(top);
  }
  return scores;
}

class PrefixCacheTest : public ::testing::Test {
 protected:
  PrefixHits Find(const Ids& ids, const std::string& tenant = "t") const {
    PrefixQuery query = {.tenant = tenant, .ids = ids};
    query.most_rows = query.most_rows_of_image =
        static_cast<int64_t>(ids.size()) - 1;
    return cache_.Find(query);
  }
  PrefixHits FindScored(const Ids& ids, int64_t top) const {
    PrefixQuery query = {.tenant = "t", .ids = ids};
    query.most_rows = query.most_rows_of_image =
        static_cast<int64_t>(ids.size()) - 1;
    query.scores = true;
    query.top_logprobs = top;
    return cache_.Find(query);
  }

  PrefixCache cache_{{.bytes = 20'000, .slots = 4, .least_rows = 2}};
};

TEST_F(PrefixCacheTest, FindsTheLongestCommonPrefix) {
  cache_.KeepSlot(0, KeptOf(Range(0, 10)));
  cache_.KeepSlot(1, KeptOf(Joined(Range(0, 6), Range(50, 6))));
  const PrefixHits hits = Find(Joined(Range(0, 8), Range(90, 3)));
  EXPECT_EQ(hits.slot.slot, 0);
  EXPECT_EQ(hits.slot.rows, 8);
  EXPECT_EQ(hits.slot.kept_rows, 10);
  EXPECT_EQ(hits.image.rows, 0);
  EXPECT_EQ(hits.shared, 8);
}

TEST_F(PrefixCacheTest, FewerRowsThanTheLeastAreNotFound) {
  cache_.KeepSlot(0, KeptOf({1, 2, 3, 4}));
  EXPECT_EQ(Find({1, 9, 9}).slot.rows, 0);
  EXPECT_EQ(Find({1, 2, 9}).slot.rows, 2);
  cache_.KeepSlot(1, KeptOf({7}));
  EXPECT_FALSE(cache_.Holds(1));
}

TEST_F(PrefixCacheTest, OtherTenantsPromptsAreNotFound) {
  cache_.KeepSlot(0, KeptOf(Range(0, 10), "a"));
  cache_.KeepImage(KeptOf(Range(0, 10), "b"), ImageOf());
  EXPECT_EQ(Find(Range(0, 10), "a").slot.rows, 9);
  EXPECT_EQ(Find(Range(0, 10), "a").image.rows, 0);
  EXPECT_EQ(Find(Range(0, 10), "b").slot.rows, 0);
  EXPECT_EQ(Find(Range(0, 10), "b").image.rows, 9);
  EXPECT_EQ(Find(Range(0, 10), "").shared, 0);
}

TEST_F(PrefixCacheTest, ARemovedTenantsPromptsAreGone) {
  cache_.KeepSlot(0, KeptOf(Range(0, 10), "a"));
  cache_.KeepImage(KeptOf(Range(20, 10), "a"), ImageOf());
  cache_.KeepImage(KeptOf(Range(20, 10), "ab"), ImageOf());
  cache_.DropTenant("a");
  EXPECT_FALSE(cache_.Holds(0));
  EXPECT_EQ(Find(Range(20, 10), "a").shared, 0);
  EXPECT_EQ(Find(Range(20, 10), "ab").image.rows, 9);
}

TEST_F(PrefixCacheTest, AStateThatIsNotDivisibleServesItsWholePromptOnly) {
  cache_.KeepImage(ExactOf(Range(0, 8)), ImageOf());
  EXPECT_EQ(Find(Range(0, 20)).image.rows, 8);
  const PrefixHits parted = Find(Joined(Range(0, 7), Range(90, 5)));
  EXPECT_EQ(parted.image.rows, 0);
  EXPECT_EQ(parted.shared, 7);
}

TEST_F(PrefixCacheTest, AShortPromptIsFoundBehindManyLongerOnes) {
  cache_.KeepImage(ExactOf(Range(0, 8)), ImageOf(1));
  for (int32_t i = 0; i < 200; ++i) {
    cache_.KeepSlot(i % 4, KeptOf(Joined(Range(0, 9), {i, i, i})));
  }
  // All slots' prompts part from the query behind the image's end, and those
  // of lower ids stand between.
  EXPECT_EQ(Find(Joined(Range(0, 9), {150, 0, 0})).image.rows, 8);
}

TEST_F(PrefixCacheTest, ASlotHoldsOnePromptUntilItIsTaken) {
  cache_.KeepSlot(2, KeptOf(Range(0, 10)));
  cache_.KeepSlot(2, KeptOf(Range(30, 5)));
  EXPECT_EQ(Find(Range(0, 10)).shared, 0);
  EXPECT_EQ(cache_.RowsIn(2), 5);
  const std::optional<KeptPrompt> taken = cache_.TakeSlot(2);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->ids, Range(30, 5));
  EXPECT_EQ(taken->tenant, "t");
  EXPECT_FALSE(cache_.TakeSlot(2).has_value());
  EXPECT_EQ(Find(Range(30, 5)).shared, 0);
}

TEST_F(PrefixCacheTest, RowsThatAreOverwrittenServeNoShorterPrefix) {
  cache_.KeepSlot(0, KeptOf(Range(0, 10)));
  cache_.Shorten(0, 7);
  EXPECT_EQ(Find(Joined(Range(0, 6), Range(90, 4))).slot.rows, 0);
  EXPECT_EQ(Find(Joined(Range(0, 7), Range(90, 4))).slot.rows, 7);
}

TEST_F(PrefixCacheTest, TheSlotWithoutAPromptIsTheLeastUseful) {
  cache_.KeepSlot(0, KeptOf(Range(0, 10)));
  cache_.KeepSlot(1, KeptOf(Range(20, 10)));
  EXPECT_EQ(cache_.LeastUseful({0, 1, 3}), 3);
  EXPECT_EQ(cache_.LeastUseful({0, 1}), 0);
  cache_.KeepSlot(0, KeptOf(Range(0, 10)));
  EXPECT_EQ(cache_.LeastUseful({0, 1}), 1);
}

TEST_F(PrefixCacheTest, ScoresAreOfTheIdBehindEachRow) {
  KeptPrompt prompt = KeptOf(Range(0, 10));
  prompt.rows = 9;
  prompt.scores = ScoresOfIds(9, 2);
  cache_.KeepSlot(0, std::move(prompt));
  EXPECT_EQ(FindScored(Range(0, 10), 2).slot.rows, 9);
  // The row of the last equal id scores an id that differs.
  EXPECT_EQ(FindScored(Joined(Range(0, 7), Range(90, 4)), 2).slot.rows, 6);
  EXPECT_EQ(FindScored(Range(0, 10), 3).slot.rows, 0);
}

TEST_F(PrefixCacheTest, WithoutScoresAScoringTurnFindsNothing) {
  cache_.KeepSlot(0, KeptOf(Range(0, 10)));
  EXPECT_EQ(FindScored(Range(0, 10), 0).slot.rows, 0);
  KeptPrompt some = KeptOf(Range(0, 10));
  some.scores = ScoresOfIds(4, 0);
  cache_.KeepSlot(0, std::move(some));
  EXPECT_EQ(FindScored(Range(0, 10), 0).slot.rows, 4);
}

TEST_F(PrefixCacheTest, TheLeastRecentlyUsedImagesGiveWay) {
  const std::shared_ptr<const StateImage> first = ImageOf(5000);
  cache_.KeepImage(KeptOf(Range(0, 10)), first);
  cache_.KeepImage(KeptOf(Range(100, 10)), ImageOf(5000));
  cache_.KeepImage(KeptOf(Range(200, 10)), ImageOf(5000));
  cache_.Used(first.get());
  cache_.KeepImage(KeptOf(Range(300, 10)), ImageOf(5000));
  EXPECT_EQ(cache_.images(), 3);
  EXPECT_EQ(cache_.evictions(), 1);
  EXPECT_LE(cache_.bytes(), 20'000);
  EXPECT_EQ(Find(Range(0, 10)).image.rows, 9);
  EXPECT_EQ(Find(Range(100, 10)).image.rows, 0);
}

TEST_F(PrefixCacheTest, AnImageThatIsTooLargeIsNotKept) {
  cache_.KeepImage(KeptOf(Range(0, 10)), ImageOf(30'000));
  EXPECT_EQ(cache_.images(), 0);
  EXPECT_EQ(cache_.bytes(), 0);
}

TEST_F(PrefixCacheTest, ImagesGiveWayToTheScoresOfASlot) {
  cache_.KeepImage(KeptOf(Range(0, 10)), ImageOf(10'000));
  KeptPrompt scored = KeptOf(Range(100, 10));
  scored.scores = ScoresOfIds(9, 200);
  cache_.KeepSlot(0, scored);
  EXPECT_EQ(cache_.images(), 0);
  EXPECT_TRUE(cache_.Holds(0));
  EXPECT_GT(cache_.bytes(), 9 * 200 * 8);
  cache_.TakeSlot(0);
  EXPECT_EQ(cache_.bytes(), 0);
}

TEST_F(PrefixCacheTest, ASlotWithTooManyScoresIsNotKept) {
  KeptPrompt scored = KeptOf(Range(0, 10));
  scored.scores = ScoresOfIds(9, 300);
  cache_.KeepSlot(0, scored);
  EXPECT_FALSE(cache_.Holds(0));
  EXPECT_EQ(cache_.bytes(), 0);
}

TEST_F(PrefixCacheTest, ALongerPromptReplacesWhatItCovers) {
  cache_.KeepImage(KeptOf(Range(0, 10)), ImageOf());
  cache_.KeepImage(KeptOf(Range(0, 20)), ImageOf());
  EXPECT_EQ(cache_.images(), 1);
  EXPECT_EQ(Find(Range(0, 30)).image.rows, 20);
  EXPECT_EQ(Find(Range(0, 8)).image.rows, 7);
  // What another one covers already is not worth a copy.
  EXPECT_FALSE(cache_.IsWorthAnImage(KeptOf(Range(0, 15))));
  EXPECT_TRUE(cache_.IsWorthAnImage(KeptOf(Range(0, 40))));
}

TEST_F(PrefixCacheTest, AFewStatesOfOnePathStay) {
  for (int32_t length = 10; length <= 100; length += 10) {
    cache_.KeepImage(ExactOf(Range(0, length)), ImageOf());
  }
  EXPECT_EQ(cache_.images(), 4);
  EXPECT_EQ(Find(Range(0, 200)).image.rows, 100);
}

TEST_F(PrefixCacheTest, ABadImageIsDropped) {
  const std::shared_ptr<const StateImage> image = ImageOf();
  cache_.KeepImage(KeptOf(Range(0, 10)), image);
  cache_.DropImage(image.get());
  EXPECT_EQ(Find(Range(0, 10)).image.rows, 0);
  EXPECT_EQ(cache_.bytes(), 0);
}

TEST_F(PrefixCacheTest, WherePromptsShareNothingMostGetNoImage) {
  int32_t next = 0;
  const auto is_worth = [this, &next] {
    return cache_.IsWorthAnImage(KeptOf(Range(100 * ++next, 10)));
  };
  for (int i = 0; i < 7; ++i) cache_.NoteLookup(false);
  EXPECT_TRUE(is_worth());
  EXPECT_FALSE(cache_.misses());
  cache_.NoteLookup(false);
  EXPECT_TRUE(cache_.misses());
  int worth = 0;
  for (int i = 0; i < 80; ++i) worth += is_worth() ? 1 : 0;
  EXPECT_EQ(worth, 10);
  cache_.NoteLookup(true);
  EXPECT_TRUE(is_worth());
}

TEST_F(PrefixCacheTest, OffKeepsNothing) {
  PrefixCache off({.bytes = 0, .slots = 1});
  EXPECT_FALSE(off.on());
  off.KeepSlot(0, KeptOf(Range(0, 100)));
  off.KeepImage(KeptOf(Range(0, 100)), ImageOf());
  EXPECT_FALSE(off.Holds(0));
  EXPECT_EQ(off.images(), 0);
}

// Beside a search through all prompts.
TEST_F(PrefixCacheTest, FindsWhatASearchThroughAllFinds) {
  std::mt19937 random(1);
  const auto pick = [&random](unsigned count) {
    return static_cast<int32_t>(random() % count);
  };
  std::vector<std::optional<KeptPrompt>> slots(4);
  for (int i = 0; i < 5000; ++i) {
    Ids ids;
    for (int32_t left = 1 + pick(12); left > 0; --left) ids.push_back(pick(2));
    if (pick(3) == 0) {
      KeptPrompt prompt = KeptOf(ids, pick(2) == 0 ? "a" : "b");
      prompt.shortest = 1 + pick(static_cast<unsigned>(ids.size()));
      const int32_t slot = pick(4);
      slots[slot] = prompt;
      if (prompt.rows < 2) slots[slot].reset();
      cache_.KeepSlot(slot, prompt);
    }
    int64_t best = 0;
    for (const std::optional<KeptPrompt>& prompt : slots) {
      if (!prompt.has_value() || prompt->tenant != "a") continue;
      const auto differ = std::mismatch(ids.begin(), ids.end() - 1,
                                        prompt->ids.begin(), prompt->ids.end());
      const int64_t rows = differ.first - ids.begin();
      if (rows >= 2 && rows >= prompt->shortest) best = std::max(best, rows);
    }
    ASSERT_EQ(Find(ids, "a").slot.rows, best);
  }
}

PrefixHits HitsOf(int64_t slot_rows, int64_t kept_rows, int64_t image_rows) {
  PrefixHits hits;
  hits.slot.rows = slot_rows;
  hits.slot.kept_rows = kept_rows;
  hits.slot.slot = slot_rows > 0 ? 0 : -1;
  hits.image.rows = image_rows;
  return hits;
}

Kind Chosen(const PrefixHits& hits, bool slot_is_free) {
  return ChoosePrefix(hits, slot_is_free, /*mem_len=*/1600, 16).kind;
}

TEST(ChoosePrefix, ASlotThatIsFreeIsTakenOver) {
  EXPECT_EQ(Chosen(HitsOf(100, 120, 0), true), Kind::kTakeOver);
  EXPECT_EQ(Chosen(HitsOf(100, 120, 110), true), Kind::kTakeOver);
  EXPECT_EQ(ChoosePrefix(HitsOf(100, 120, 0), true, 1600, 16).rows, 100);
}

TEST(ChoosePrefix, AnImageThatHasMuchMoreIsImported) {
  EXPECT_EQ(Chosen(HitsOf(100, 120, 200), true), Kind::kImport);
  EXPECT_EQ(Chosen(HitsOf(0, 0, 200), false), Kind::kImport);
  EXPECT_EQ(ChoosePrefix(HitsOf(100, 120, 200), true, 1600, 16).rows, 200);
}

TEST(ChoosePrefix, APromptOfWhichLittleIsUsedStays) {
  EXPECT_EQ(Chosen(HitsOf(200, 500, 0), true), Kind::kCopy);
  EXPECT_EQ(Chosen(HitsOf(200, 400, 0), true), Kind::kTakeOver);
}

TEST(ChoosePrefix, AnotherSessionsSlotIsCopied) {
  EXPECT_EQ(Chosen(HitsOf(100, 100, 0), false), Kind::kCopy);
}

TEST(ChoosePrefix, AFewRowsAreFedSoonerThanASlotIsCopied) {
  EXPECT_EQ(Chosen(HitsOf(99, 99, 0), false), Kind::kFeed);
  EXPECT_EQ(Chosen(HitsOf(99, 99, 90), false), Kind::kImport);
}

TEST(ChoosePrefix, NothingFoundIsFed) {
  EXPECT_EQ(Chosen(HitsOf(0, 0, 0), false), Kind::kFeed);
}

}  // namespace
}  // namespace txl
