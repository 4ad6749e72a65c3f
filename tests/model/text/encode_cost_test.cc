// What hard texts cost: processor time, hard and plain text in the same run.
// The least of a few measurements counts, as other work can only add to it.
//
// Seen with 64 KiB (optimized, one core), the worst of hard_texts.h by kind:
//
//   bytes, decimal_bytes      2.2 times plain (microseconds)
//   digits                    1.3
//   symbols, characters       1.6   ",\n"
//   wikitext                  3.1   ",'"
//   unigram                   2.1   "o", a run of the longest piece's prefixes
//   bpe                       3.7   "o"
//
// Before specials were looked for once and lines cut in batches: wikitext 16
// times with 16 KiB of "<unk>", growing with the square of the length.

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/model/text/every_vocabulary.h"
#include "tests/model/text/hard_texts.h"

namespace txl {
namespace {

constexpr size_t kBytes = 64 * 1024;
// As vocabulary.h promises of a program that is optimized; checks that a build
// adds cost the one text more than the other.
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
constexpr double kMaxTimesPlain = 5;
#else
constexpr double kMaxTimesPlain = 10;
#endif
// Eight times the work in at most 2.5 times the time for each doubling.
constexpr size_t kGrowth = 8;
constexpr double kMaxGrowth = 2.5 * 2.5 * 2.5;
// Seconds; below it a shared machine adds more than what is measured. Time that
// grows with the square of these texts is thousands of times as long.
constexpr double kTooShortToTell = 500e-6;
constexpr int kMostRuns = 40;

double ThreadSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

double SecondsOf(const std::function<void()>& work) {
  const double begin = ThreadSeconds();
  work();
  return ThreadSeconds() - begin;
}

// Whether `work` takes at most `times` as long as `other`, each the least of as
// many runs as it takes to say yes.
testing::AssertionResult AtMost(double times, const std::function<void()>& work,
                                const std::function<void()>& other,
                                double* ratio) {
  double least = SecondsOf(work);
  double least_other = SecondsOf(other);
  const auto holds = [&] {
    return least <= times * least_other || least < kTooShortToTell;
  };
  for (int run = 1; run < kMostRuns && !holds(); ++run) {
    least = std::min(least, SecondsOf(work));
    least_other = std::min(least_other, SecondsOf(other));
  }
  *ratio = least / least_other;
  if (holds()) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << least * 1e3 << " ms, the other " << least_other * 1e3 << " ms";
}

class EncodeCost : public testing::TestWithParam<size_t> {
 protected:
  // What the kernel takes for fresh pages of a long list is not the
  // vocabulary's: freed ones are kept.
  static void SetUpTestSuite() {
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
  }
  void SetUp() override { named_ = std::move(EveryVocabulary()[GetParam()]); }

  // A call as the server makes it: a text has no more ids than bytes, or is
  // refused.
  std::function<void()> Encoding(const std::string& text,
                                 bool skip_unknown = false) const {
    const EncodeOptions options = {
        .max_tokens = static_cast<int64_t>(text.size()),
        .skip_unknown = skip_unknown};
    return [this, text, options] {
      named_.vocabulary->Encode(text, options).status().IgnoreError();
    };
  }

  NamedVocabulary named_;
};

TEST_P(EncodeCost, HardTextTakesAtMostFiveTimesPlainTextsTime) {
  const auto plain = Encoding(Repeated(named_.text, kBytes));
  double worst = 0;
  std::string worst_pattern;
  for (const std::string& pattern : HardPatterns()) {
    double ratio = 0;
    EXPECT_TRUE(AtMost(kMaxTimesPlain, Encoding(Repeated(pattern, kBytes)),
                       plain, &ratio))
        << named_.name << ": " << testing::PrintToString(pattern);
    if (ratio <= worst) continue;
    worst = ratio;
    worst_pattern = pattern;
  }
  std::printf("%s: worst %.1f times plain, %s\n", named_.name.c_str(), worst,
              testing::PrintToString(worst_pattern).c_str());
}

TEST_P(EncodeCost, TimeGrowsWithTheLengthOfTheText) {
  for (const std::string& pattern : HardPatterns()) {
    const auto whole = Encoding(Repeated(pattern, kBytes));
    const auto part = Encoding(Repeated(pattern, kBytes / kGrowth));
    double ratio = 0;
    EXPECT_TRUE(AtMost(kMaxGrowth, whole, part, &ratio))
        << named_.name << ": " << testing::PrintToString(pattern);
  }
}

// Of such text nothing or little is left; its end is never near.
TEST_P(EncodeCost, SkippedTextCostsNoMoreThanOther) {
  const auto plain = Encoding(Repeated(named_.text, kBytes), true);
  for (const char* pattern :
       {"\u0416", "\u0416 ", "\u0416\n", "\u0416,'\u0416 ", "\u0416 Mr. ",
        "<unk", "<form", "th\u0416"}) {
    const auto whole = Encoding(Repeated(pattern, kBytes), true);
    const auto part = Encoding(Repeated(pattern, kBytes / kGrowth), true);
    double ratio = 0;
    EXPECT_TRUE(AtMost(kMaxTimesPlain, whole, plain, &ratio))
        << named_.name << ": " << testing::PrintToString(pattern);
    EXPECT_TRUE(AtMost(kMaxGrowth, whole, part, &ratio))
        << named_.name << ": " << testing::PrintToString(pattern);
  }
}

TEST_P(EncodeCost, DecodingTimeGrowsWithTheNumberOfIds) {
  constexpr size_t kIds = 16 * 1024;
  const Vocabulary& vocabulary = *named_.vocabulary;
  // Each id again and again, and in turn with the next one.
  const auto size =
      static_cast<int32_t>(std::min<int64_t>(vocabulary.size(), 40));
  for (int32_t id = 0; id < 2 * size; ++id) {
    const auto decoding = [&](size_t count) {
      std::vector<int32_t> ids(count, id / 2);
      for (size_t i = 0; id % 2 == 1 && i < count; i += 2) {
        ids[i] = (id / 2 + 1) % size;
      }
      return [&vocabulary, ids] { EXPECT_TRUE(vocabulary.Decode(ids).ok()); };
    };
    double ratio = 0;
    EXPECT_TRUE(
        AtMost(kMaxGrowth, decoding(kIds), decoding(kIds / kGrowth), &ratio))
        << named_.name << ": id " << id / 2;
  }
}

std::string TestName(const testing::TestParamInfo<size_t>& info) {
  std::string name = EveryVocabulary()[info.param].name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == ','; },
      '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Every, EncodeCost,
                         testing::Range(size_t{0}, EveryVocabulary().size()),
                         TestName);

}  // namespace
}  // namespace txl
