#include "server/session/token_sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

namespace txl {
namespace {

constexpr int64_t kPiece = TokenSequence::kPieceTokens;

// begin, begin + 1, ..., end - 1.
std::vector<int32_t> Numbers(int64_t begin, int64_t end) {
  std::vector<int32_t> ids(static_cast<size_t>(end - begin));
  std::iota(ids.begin(), ids.end(), static_cast<int32_t>(begin));
  return ids;
}

// Id n at place n, appended in steps of 1, 2, 3, ... ids.
TokenSequence Grown(int64_t size) {
  TokenSequence sequence;
  for (int64_t step = 1; sequence.size() < size; ++step) {
    const int64_t begin = sequence.size();
    sequence.Append(Numbers(begin, std::min(begin + step, size)));
  }
  return sequence;
}

TEST(TokenSequence, ABranchGoesOnByItself) {
  for (const int64_t cut : {0, 1, 4095, 4096, 4097, 10'000}) {
    std::vector<int32_t> ids(10'000);
    std::iota(ids.begin(), ids.end(), 0);
    TokenSequence trunk;
    trunk.Append(ids);
    TokenSequence branch = trunk.First(cut);
    EXPECT_EQ(branch.size(), cut);
    trunk.Append({-1, -2});
    branch.Append({-3});
    std::vector<int32_t> expected(ids.begin(), ids.begin() + cut);
    expected.push_back(-3);
    EXPECT_EQ(branch.Slice(0, 20'000).Copy(), expected);
    ids.insert(ids.end(), {-1, -2});
    EXPECT_EQ(trunk.Slice(0, 20'000).Copy(), ids);
  }
}

TEST(TokenSequence, HoldsWhatWasAppendedInOrder) {
  for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{16}, int64_t{17},
                             kPiece - 1, kPiece, kPiece + 1, 5 * kPiece + 3}) {
    const TokenSequence sequence = Grown(size);
    ASSERT_EQ(sequence.size(), size);
    EXPECT_EQ(sequence.Slice(0, size).Copy(), Numbers(0, size));
    for (int64_t i = 0; i < size; i += 97) EXPECT_EQ(sequence[i], i);
    if (size > 0) {
      EXPECT_EQ(sequence.back(), size - 1);
    }
  }
}

TEST(TokenSequence, TakesManyPiecesAtOnce) {
  TokenSequence sequence = Grown(10);
  sequence.Append(Numbers(10, 3 * kPiece + 10));
  EXPECT_EQ(sequence.Slice(0, sequence.size()).Copy(),
            Numbers(0, 3 * kPiece + 10));
}

TEST(TokenSequence, ASliceIsAnyPartOfIt) {
  const int64_t size = 3 * kPiece + 5;
  const TokenSequence sequence = Grown(size);
  for (const int64_t from : {int64_t{0}, int64_t{1}, kPiece - 1, kPiece,
                             2 * kPiece + 7, size - 1, size, size + 1}) {
    for (const int64_t count : {int64_t{0}, int64_t{1}, kPiece - 1, kPiece,
                                kPiece + 1, size, 2 * size}) {
      const int64_t begin = std::min(from, size);
      const int64_t end = std::min(begin + count, size);
      const TokenSlice slice = sequence.Slice(from, count);
      EXPECT_EQ(slice.size(), end - begin);
      ASSERT_EQ(slice.Copy(), Numbers(begin, end)) << from << " " << count;
    }
  }
}

TEST(TokenSequence, APartOfASliceIsCopiedAlone) {
  const TokenSlice slice = Grown(3 * kPiece).Slice(5, 2 * kPiece + 9);
  for (const int64_t from : {int64_t{0}, int64_t{1}, kPiece - 6, kPiece - 5,
                             kPiece, 2 * kPiece + 8}) {
    for (const int64_t count : {int64_t{0}, int64_t{1}, kPiece, kPiece + 9}) {
      if (from + count > slice.size()) continue;
      EXPECT_EQ(slice.Part(from, count), Numbers(5 + from, 5 + from + count))
          << from << " " << count;
    }
  }
}

TEST(TokenSequence, LastGivesTheEnd) {
  const TokenSequence sequence = Grown(kPiece + 2);
  EXPECT_EQ(sequence.Last(0), Numbers(0, 0));
  EXPECT_EQ(sequence.Last(4), Numbers(kPiece - 2, kPiece + 2));
  EXPECT_EQ(sequence.Last(10 * kPiece), Numbers(0, kPiece + 2));
  EXPECT_EQ(TokenSequence().Last(3), Numbers(0, 0));
}

TEST(TokenSequence, ASliceStaysAsItWasWhileTheSequenceGrowsAndIsGone) {
  TokenSlice slice;
  {
    TokenSequence sequence = Grown(kPiece + 9);
    slice = sequence.Slice(kPiece - 3, 100);
    sequence.Append(Numbers(0, 3 * kPiece));
  }
  EXPECT_EQ(slice.Copy(), Numbers(kPiece - 3, kPiece + 9));
}

// The session store takes slices under its lock and copies them without it.
TEST(TokenSequence, ASliceMayBeReadWhileTheSequenceGrows) {
  TokenSequence sequence = Grown(7);
  const TokenSlice slice = sequence.Slice(0, 7);
  std::atomic<bool> done{false};
  std::thread reader([&] {
    do {
      ASSERT_EQ(slice.Copy(), Numbers(0, 7));
    } while (!done);
  });
  for (int64_t i = 7; i < 2 * kPiece; ++i) {
    sequence.Append({static_cast<int32_t>(i)});
  }
  done = true;
  reader.join();
  EXPECT_EQ(sequence.Last(2 * kPiece), Numbers(0, 2 * kPiece));
}

TEST(TokenSequence, ItsBytesNeverFallAndAreAtMostTwiceTheIds) {
  EXPECT_EQ(TokenSequence::BytesFor(0), 0);
  int64_t before = 0;
  for (int64_t size = 1; size < 3 * kPiece; ++size) {
    const int64_t bytes = TokenSequence::BytesFor(size);
    ASSERT_GE(bytes, before) << size;
    ASSERT_GE(bytes, 4 * size);
    ASSERT_LE(bytes, 8 * size + 128);
    before = bytes;
  }
  const int64_t many = 16 << 20;
  EXPECT_LE(TokenSequence::BytesFor(many), many * 4 / 100 * 102);
}

}  // namespace
}  // namespace txl
