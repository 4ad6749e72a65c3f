#include "model/cuda/kernels/words.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

constexpr int64_t kWordStride = 192;  // more than a block's numbers in all rows
constexpr int32_t kBegin = 10;
constexpr int32_t kEnd = 14;

template <typename T>
class WordsTest : public ::testing::Test {
 protected:
  // Number k of the row of word `id`, of any bin.
  static float Number(int32_t id, int64_t k) {
    return Widen(Narrow<T>(static_cast<float>(id) + 0.37f * k));
  }
  static std::vector<T> Table() {
    std::vector<T> table;
    for (int32_t id = kBegin; id < kEnd; ++id) {
      for (int64_t k = 0; k < kWordStride; ++k) {
        table.push_back(Narrow<T>(Number(id, k)));
      }
    }
    return table;
  }
  BinWords<T> Words() const {
    BinWords<T> words;
    words.rows = static_cast<int>(tokens_.size());
    words.tokens = tokens_there_.data();
    words.begin = kBegin;
    words.end = kEnd;
    words.table = table_.data();
    words.stride = kWordStride;
    return words;
  }
  int64_t size() const {
    return static_cast<int64_t>(tokens_.size()) * kWordStride;
  }
  bool InBin(size_t r) const {
    return tokens_[r] >= kBegin && tokens_[r] < kEnd;
  }

  // First and last word of the bin, their neighbours in other bins.
  const std::vector<int32_t> tokens_ = {10, 9, 13, 14, 0, 12, 12};
  const Array<int32_t> tokens_there_ = ToDevice(tokens_);
  const Array<T> table_ = ToDevice(Table());
  Stream stream_;
};
using Formats = ::testing::Types<float, Bf16, F16>;
TYPED_TEST_SUITE(WordsTest, Formats);

TYPED_TEST(WordsTest, AreFoundInTheirBinAndZerosInOthers) {
  using T = TypeParam;
  const Array<T> found = Unwritten<T>(this->size());
  LaunchFindWords(this->stream_, this->Words(), found.data());
  this->stream_.Wait();
  const std::vector<T> numbers = ToHost(found);
  for (size_t r = 0; r < this->tokens_.size(); ++r) {
    for (int64_t k = 0; k < kWordStride; ++k) {
      EXPECT_EQ(Widen(numbers[r * kWordStride + k]),
                this->InBin(r) ? this->Number(this->tokens_[r], k) : 0.0f);
    }
  }
}

TYPED_TEST(WordsTest, AreAddedToWhatIsThereAndScaled) {
  using T = TypeParam;
  constexpr float kScale = 3;
  std::vector<float> before(this->size());
  for (size_t i = 0; i < before.size(); ++i) before[i] = 0.25f * i;
  for (const bool adds : {false, true}) {
    const Array<float> wide = ToDevice(before);
    const Array<T> narrow = Unwritten<T>(this->size());
    AddWordsArgs<T> args;
    args.words = this->Words();
    args.add = adds ? wide.data() : nullptr;
    args.scale = kScale;
    args.wide = wide.data();
    args.narrow = narrow.data();
    LaunchAddWords(this->stream_, args);
    this->stream_.Wait();
    const std::vector<float> y = ToHost(wide);
    const std::vector<T> rounded = ToHost(narrow);
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t r = i / kWordStride;
      float expected = adds ? before[i] : 0;
      if (this->InBin(r)) {
        expected += this->Number(this->tokens_[r], i % kWordStride);
      }
      EXPECT_EQ(y[i], expected * kScale);
      EXPECT_EQ(Widen(rounded[i]), Widen(Narrow<T>(expected * kScale)));
    }
  }
}

TYPED_TEST(WordsTest, AnEmptyBinOnlyScales) {
  using T = TypeParam;
  const Array<float> wide = ToDevice(std::vector<float>(this->size(), 5));
  AddWordsArgs<T> args;
  args.words = this->Words();
  args.words.end = args.words.begin;
  args.words.table = nullptr;
  args.add = wide.data();
  args.scale = 0.5f;
  args.wide = wide.data();
  LaunchAddWords(this->stream_, args);
  this->stream_.Wait();
  EXPECT_EQ(ToHost(wide), std::vector<float>(this->size(), 2.5f));
}

TYPED_TEST(WordsTest, BeatAndBarAreAddedBehindTheScale) {
  using T = TypeParam;
  const auto number = [](int32_t row, int64_t k) { return 0.5f * row + k; };
  const auto table = [&](int32_t first, int32_t rows) {
    std::vector<float> numbers;
    for (int32_t row = first; row < first + rows; ++row) {
      for (int64_t k = 0; k < kWordStride; ++k) {
        numbers.push_back(number(row, k));
      }
    }
    return numbers;
  };
  // Token 9 restarts; bar 3 is bar 0 again.
  const std::vector<int32_t> ticks = {0, 7, 3, 4, 11, 12, 17};
  const std::vector<int32_t> beats = {0, 0, 3, 0, 3, 0, 1};
  const std::vector<int32_t> bars = {0, 0, 0, 1, 2, 0, 1};
  const Array<int32_t> ticks_there = ToDevice(ticks);
  const Array<float> beat = ToDevice(table(0, 4));
  const Array<float> bar = ToDevice(table(100, 3));
  const Array<float> wide = ToDevice(std::vector<float>(this->size(), 2));
  AddWordsArgs<T> args;
  args.words = this->Words();
  args.words.end = args.words.begin;
  args.add = wide.data();
  args.scale = 3;
  args.beats = {{1, 2, 3, /*restart=*/9, /*bar_ticks=*/4, /*bars=*/3},
                ticks_there.data(),
                beat.data(),
                bar.data()};
  args.wide = wide.data();
  LaunchAddWords(this->stream_, args);
  this->stream_.Wait();
  const std::vector<float> y = ToHost(wide);
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t r = i / kWordStride;
    const int64_t k = i % kWordStride;
    EXPECT_EQ(y[i], 6 + number(beats[r], k) + number(100 + bars[r], k)) << r;
  }
}

}  // namespace
}  // namespace txl::cuda
