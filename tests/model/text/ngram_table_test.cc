#include "model/text/ngram_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "model/text/byte_vocabulary.h"
#include "model/text/digit_vocabulary.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

constexpr uint32_t kFingerprint = 77;

uint64_t HashOf(const Ids& context) {
  uint64_t hash = 0;
  for (auto id = context.rbegin(); id != context.rend(); ++id) {
    hash = ExtendNgramHash(hash, *id);
  }
  return hash;
}

NgramTable Small() {
  NgramTable table(3, kFingerprint, 8);
  table.Add(HashOf({5}), {1, 0});
  table.Add(HashOf({4, 5}), {2, 3});
  table.Add(HashOf({9, 4, 5}), {3, 7});
  return table;
}

std::string PathOf(const std::string& name) {
  return ::testing::TempDir() + "/" + name;
}

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(NgramTableTest, TheLongestKnownEndOfAContextSpeaks) {
  const NgramTable table = Small();
  EXPECT_EQ(table.Next(Ids{9, 4, 5})->id, 3);
  EXPECT_EQ(table.Next(Ids{9, 4, 5})->level, 7);
  EXPECT_EQ(table.Next(Ids{8, 4, 5})->id, 2);
  EXPECT_EQ(table.Next(Ids{4, 5})->level, 3);
  EXPECT_EQ(table.Next(Ids{7, 7, 7, 5})->id, 1);
  EXPECT_EQ(table.Next(Ids{5})->level, 0);
  EXPECT_FALSE(table.Next(Ids{9, 4}).has_value());
  EXPECT_FALSE(table.Next(Ids{}).has_value());
  EXPECT_EQ(table.size(), 3);
}

TEST(NgramTableTest, AFullNeighbourhoodTakesNoMore) {
  NgramTable table(1, kFingerprint, 1);  // two places
  int added = 0;
  for (int32_t id = 0; id < 20; ++id) {
    added += table.Add(HashOf({id}), {id, 0}) ? 1 : 0;
  }
  EXPECT_EQ(added, table.size());
  EXPECT_LE(added, 2);
}

TEST(NgramTableTest, AFileGivesTheSameTableBack) {
  const std::string path = PathOf("same_ngrams");
  ASSERT_TRUE(Small().Write(path).ok());
  const auto table = NgramTable::Read(path, kFingerprint, 10);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->order(), 3);
  EXPECT_EQ(table->size(), 3);
  EXPECT_EQ(table->Next(Ids{1, 4, 5})->id, 2);
}

TEST(NgramTableTest, RefusesWhatItWasNotMadeFor) {
  const std::string path = PathOf("other_ngrams");
  ASSERT_TRUE(Small().Write(path).ok());
  const auto message = [&](uint32_t fingerprint, int64_t vocab_size) {
    const auto read = NgramTable::Read(path, fingerprint, vocab_size);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(read.status().message());
  };
  EXPECT_THAT(message(78, 10), HasSubstr("another vocabulary"));
  EXPECT_THAT(message(kFingerprint, 3), HasSubstr("ids that the model does"));
  EXPECT_EQ(NgramTable::Read(PathOf("none"), 1, 1).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(NgramTableTest, AFlippedBitOfAnyByteAndEveryCutAreRefused) {
  const std::string path = PathOf("damaged_ngrams");
  ASSERT_TRUE(Small().Write(path).ok());
  const std::string good = Bytes(path);
  for (size_t byte = 0; byte < good.size(); ++byte) {
    const size_t bit = byte * 8 + byte % 8;
    // The last four bytes of the header mean nothing.
    if (bit / 8 >= 28 && bit / 8 < 32) continue;
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    WriteBytes(path, bad);
    const auto read = NgramTable::Read(path, kFingerprint, 10);
    // Another order within the range is another table, of no harm.
    if (read.ok()) {
      EXPECT_EQ(bit / 32, 2u) << "bit " << bit;
    }
  }
  for (size_t size = 0; size < good.size(); ++size) {
    WriteBytes(path, good.substr(0, size));
    EXPECT_FALSE(NgramTable::Read(path, kFingerprint, 10).ok()) << size;
  }
}

TEST(VocabularyFingerprintTest, DependsOnEveryIdsBytes) {
  const ByteVocabulary bytes;
  EXPECT_EQ(VocabularyFingerprint(bytes),
            VocabularyFingerprint(ByteVocabulary()));
  EXPECT_NE(VocabularyFingerprint(DigitVocabulary(10)),
            VocabularyFingerprint(DigitVocabulary(9)));
  EXPECT_NE(VocabularyFingerprint(bytes),
            VocabularyFingerprint(DigitVocabulary(10)));
}

using Ids = std::vector<int32_t>;

NgramTable Build(const Ids& ids, int32_t order, int64_t entries = 1000) {
  return BuildNgrams(ids, 1, {.order = order, .entries = entries});
}

TEST(NgramBuilderTest, GuessesWhatFollowedMostOften) {
  // Behind 1: 2, 2, 3. Met three times, right twice of three and one more.
  const NgramTable table = Build({1, 2, 1, 2, 1, 3}, 1);
  EXPECT_EQ(table.Next(Ids{1})->id, 2);
  EXPECT_EQ(table.Next(Ids{1})->level, kNgramLevels * 2 / 4);
  EXPECT_EQ(table.Next(Ids{2})->id, 1);
  EXPECT_FALSE(table.Next(Ids{3}).has_value());
}

TEST(NgramBuilderTest, WhatWasMetOnceIsNoRule) {
  EXPECT_EQ(Build({1, 2, 3, 4, 5}, 3).size(), 0);
  EXPECT_EQ(Build({}, 3).size(), 0);
  EXPECT_EQ(Build({4}, 3).size(), 0);
}

TEST(NgramBuilderTest, ALongerContextIsKeptWhereItSaysMore) {
  // 2 is followed by 5 behind 1, by 6 behind 3, three times each.
  Ids ids;
  for (int i = 0; i < 3; ++i) ids.insert(ids.end(), {1, 2, 5, 9, 3, 2, 6, 9});
  const NgramTable table = Build(ids, 2);
  EXPECT_EQ(table.Next(Ids{1, 2})->id, 5);
  EXPECT_EQ(table.Next(Ids{3, 2})->id, 6);
  // 9 is behind 5 whatever stands before it, as surely as behind 5 alone.
  EXPECT_EQ(table.Next(Ids{2, 5})->id, 9);
  // Those two, what is behind 5 9 and 6 9, and 2 behind 9 1, met less often.
  EXPECT_EQ(table.size(), Build(ids, 1).size() + 5);
}

TEST(NgramBuilderTest, KeepsTheCommonest) {
  Ids ids;
  for (int i = 0; i < 9; ++i) ids.insert(ids.end(), {1, 2});
  for (int i = 0; i < 3; ++i) ids.insert(ids.end(), {3, 4});
  const NgramTable table = Build(ids, 1, 2);
  EXPECT_EQ(table.size(), 2);
  EXPECT_TRUE(table.Next(Ids{1}).has_value());
  EXPECT_TRUE(table.Next(Ids{2}).has_value());
  EXPECT_FALSE(table.Next(Ids{3}).has_value());
}

// Of every context that was met twice or more: the guess of the longest one
// that is, or one that was met as often; but for the few without room.
TEST(NgramBuilderTest, GuessesAsCountingDoes) {
  constexpr size_t kOrder = 4;
  std::mt19937 random(3);
  Ids ids;
  for (int i = 0; i < 3000; ++i) {
    // Half of the ids depend on the two before them.
    ids.push_back(i < 2 || random() % 2 == 0
                      ? static_cast<int32_t>(random() % 6)
                      : (ids[i - 1] * 5 + ids[i - 2] * 3) % 6);
  }
  std::map<Ids, std::map<int32_t, int>> followed;
  for (size_t n = 1; n <= kOrder; ++n) {
    for (size_t i = n; i < ids.size(); ++i) {
      ++followed[Ids(ids.begin() + i - n, ids.begin() + i)][ids[i]];
    }
  }
  const NgramTable table = Build(ids, kOrder, 100'000);
  int looked_at = 0, agreed = 0;
  for (size_t i = kOrder; i < ids.size(); ++i) {
    const Ids context(ids.begin() + i - kOrder, ids.begin() + i);
    const auto& counts = followed[context];
    int all = 0, most = 0;
    for (const auto& [id, count] : counts) {
      all += count;
      most = std::max(most, count);
    }
    if (all < 2) continue;
    ++looked_at;
    const auto guess = table.Next(context);
    ASSERT_TRUE(guess.has_value());
    const auto right = counts.find(guess->id);
    agreed += right != counts.end() && right->second == most &&
              guess->level == kNgramLevels * most / (all + 1);
  }
  EXPECT_GT(agreed, looked_at * 97 / 100);
  EXPECT_GT(looked_at, 2000);
}

}  // namespace

}  // namespace txl
