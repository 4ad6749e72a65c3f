#include "model/train/streams.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace txl {
namespace {

std::vector<int64_t> Counting(int64_t count) {
  std::vector<int64_t> ids(count);
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TEST(TrainingStreamsTest, ASegmentContinuesTheStreamOfTheOneBefore) {
  const TrainingStreams streams(Counting(41), {4, 5}, 1);
  EXPECT_EQ(streams.steps_per_pass(), 2);
  const SegmentBatch first = streams.At(0);
  const SegmentBatch second = streams.At(1);
  EXPECT_TRUE(first.first);
  EXPECT_FALSE(second.first);
  // Streams of 10 tokens: row 2 begins at 20.
  EXPECT_TRUE(first.inputs[2].equal(at::arange(20, 25)));
  EXPECT_TRUE(first.targets[2].equal(at::arange(21, 26)));
  EXPECT_TRUE(second.inputs[2].equal(at::arange(25, 30)));
}

TEST(TrainingStreamsTest, TargetsAreTheNextTokensInEveryPass) {
  const TrainingStreams streams(Counting(47), {3, 4}, 9);
  for (int64_t step = 0; step < 12; ++step) {
    const SegmentBatch batch = streams.At(step);
    EXPECT_TRUE(batch.targets.equal((batch.inputs + 1).remainder(47)))
        << "step " << step;
  }
}

TEST(TrainingStreamsTest, EachPassIsCutElsewhereAndStartsAfresh) {
  const TrainingStreams streams(Counting(1000), {2, 50}, 3);
  std::set<int64_t> starts;
  for (int64_t pass = 0; pass < 5; ++pass) {
    const SegmentBatch batch = streams.At(pass * streams.steps_per_pass());
    EXPECT_TRUE(batch.first);
    starts.insert(batch.inputs[0][0].item<int64_t>());
  }
  EXPECT_GE(starts.size(), 4u);
}

TEST(TrainingStreamsTest, IsAFunctionOfSeedAndStep) {
  const std::vector<int64_t> ids = Counting(500);
  const TrainingStreams a(ids, {2, 10}, 3), b(ids, {2, 10}, 3),
      c(ids, {2, 10}, 4);
  EXPECT_TRUE(a.At(60).inputs.equal(b.At(60).inputs));
  EXPECT_FALSE(a.At(60).inputs.equal(c.At(60).inputs));
}

TEST(CheckStreamsTest, NeedsOneSegmentPerStream) {
  EXPECT_TRUE(CheckStreams(21, {4, 5}).ok());
  EXPECT_FALSE(CheckStreams(20, {4, 5}).ok());
  EXPECT_FALSE(CheckStreams(100, {0, 5}).ok());
  EXPECT_FALSE(CheckStreams(100, {1, 0}).ok());
}

// How often every token is a counted target.
std::map<int64_t, int> TargetCounts(const std::vector<EvaluationBatch>& all) {
  std::map<int64_t, int> counts;
  for (const EvaluationBatch& batch : all) {
    const at::Tensor targets = batch.targets.masked_select(batch.counted);
    for (int64_t i = 0; i < targets.numel(); ++i) {
      ++counts[targets[i].item<int64_t>()];
    }
  }
  return counts;
}

TEST(EvaluationStreamsTest, WholeCountsEveryTokenButTheFirstOnce) {
  for (int64_t count : {2, 3, 17, 40, 41}) {
    for (const StreamShape shape :
         {StreamShape{1, 7}, StreamShape{4, 3}, StreamShape{60, 2}}) {
      const auto counts = TargetCounts(
          EvaluationStreams(Counting(count), shape, StreamCut::kWhole));
      EXPECT_EQ(counts.size(), static_cast<size_t>(count - 1));
      EXPECT_FALSE(counts.contains(0));
      for (const auto& [target, times] : counts) EXPECT_EQ(times, 1);
    }
  }
}

TEST(EvaluationStreamsTest, CountedTargetsFollowTheirInputs) {
  for (const StreamCut cut : {StreamCut::kWhole, StreamCut::kOriginal}) {
    for (const auto& batch : EvaluationStreams(Counting(23), {3, 4}, cut)) {
      EXPECT_TRUE(batch.targets.equal(batch.inputs + 1));
    }
  }
}

TEST(EvaluationStreamsTest, OriginalDropsTheRemainderAndTheBorders) {
  // 23 tokens, 3 streams of 7: targets 1..6, 8..13, 15..20.
  const auto counts = TargetCounts(
      EvaluationStreams(Counting(23), {3, 4}, StreamCut::kOriginal));
  EXPECT_EQ(counts.size(), 18u);
  for (int64_t absent : {0, 7, 14, 21, 22}) {
    EXPECT_FALSE(counts.contains(absent)) << absent;
  }
}

TEST(EvaluationStreamsTest, ATextOfOneTokenHasNoTargets) {
  EXPECT_TRUE(
      EvaluationStreams(Counting(1), {3, 4}, StreamCut::kWhole).empty());
}

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CorpusTest, CharactersAreNumberedInCodePointOrder) {
  const auto corpus = MakeCorpus("bä\na€b", CorpusVocabulary::kCharacters, 0);
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_THAT(corpus->symbols, ElementsAre("\n", "a", "b", "ä", "€"));
  EXPECT_THAT(corpus->train, ElementsAre(2, 3, 0, 1, 4, 2));
  EXPECT_EQ(corpus->vocab_size(), 5);
  EXPECT_TRUE(corpus->held_out.empty());
}

TEST(CorpusTest, BytesAreTheirOwnIds) {
  const auto corpus = MakeCorpus("a\xff", CorpusVocabulary::kBytes, 0);
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_THAT(corpus->train, ElementsAre(97, 255));
  EXPECT_EQ(corpus->vocab_size(), 256);
}

TEST(CorpusTest, TheEndOfTheTextIsHeldOut) {
  const auto corpus = MakeCorpus("0123456789", CorpusVocabulary::kBytes, 0.2);
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_EQ(corpus->train.size(), 8u);
  EXPECT_THAT(corpus->held_out, ElementsAre('8', '9'));
}

TEST(CorpusTest, HeldOutSymbolsAreInTheVocabularyToo) {
  const auto corpus =
      MakeCorpus("aaaaaaaaaz", CorpusVocabulary::kCharacters, 0.1);
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_THAT(corpus->held_out, ElementsAre(1));
}

TEST(CorpusTest, InvalidUtf8IsNamedByItsByte) {
  const auto corpus = MakeCorpus("ab\xff", CorpusVocabulary::kCharacters, 0);
  EXPECT_EQ(corpus.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(corpus.status().message(), HasSubstr("byte 2"));
}

TEST(CorpusTest, EmptyTextsAndImpossibleSharesAreRefused) {
  EXPECT_FALSE(MakeCorpus("", CorpusVocabulary::kBytes, 0).ok());
  EXPECT_FALSE(MakeCorpus("a", CorpusVocabulary::kBytes, 1).ok());
  EXPECT_FALSE(MakeCorpus("a", CorpusVocabulary::kBytes, -0.1).ok());
}

TEST(CorpusTest, IdsAreCutLikeText) {
  const Corpus corpus = SplitIds({7, 8, 9, 1, 2}, 0.4);
  EXPECT_THAT(corpus.train, ElementsAre(7, 8, 9));
  EXPECT_THAT(corpus.held_out, ElementsAre(1, 2));
}

TEST(ParseIdsTest, NumbersArePartedByWhitespace) {
  EXPECT_THAT(*ParseIds("3 0\n41\t\r\n 2\n", 42, "f"),
              ElementsAre(3, 0, 41, 2));
  EXPECT_TRUE(ParseIds(" \n", 42, "f")->empty());
}

TEST(ParseIdsTest, TheFirstWordThatIsNoIdIsNamed) {
  for (const char* bad : {"42", "-1", "x", "1.5", "99999999999999999999"}) {
    const auto ids = ParseIds(std::string("3 0 ") + bad + " y", 42, "file");
    EXPECT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(ids.status().message()),
                testing::AllOf(testing::StartsWith("file: word 3, \""),
                               HasSubstr(bad), HasSubstr("from 0 to 41")));
  }
}

TEST(CorpusTest, AMissingFileIsNamed) {
  const auto text = ReadTextFile("/no/such/file");
  EXPECT_EQ(text.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(text.status().message(), HasSubstr("/no/such/file"));
}

}  // namespace

}  // namespace txl
