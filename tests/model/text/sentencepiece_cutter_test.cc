#include "model/text/sentencepiece_cutter.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using Algorithm = SentencePieceModel::Algorithm;
using Cuts = std::vector<std::pair<std::string, int32_t>>;

constexpr int32_t kUnknown = 0;

// Pieces of "a", "b" and "c" that overlap in many ways; none spans a space.
SentencePieceModel Model(Algorithm algorithm) {
  SentencePieceModel model;
  model.algorithm = algorithm;
  model.pieces.push_back({"<unk>", 0, PieceType::kUnknown});
  float score = 0;
  for (const char* text : {"a", "b", " ", "ab", "ba", "abab", "aa", "aab", "bb",
                           "aabb", "babab", "aaaa"}) {
    model.pieces.push_back({text, score -= 0.7f, PieceType::kNormal});
  }
  return model;
}

Cuts CutUp(const SentencePieceModel& model, const std::string& text) {
  Cuts cuts;
  const PieceCutter cutter(model);
  EXPECT_TRUE(cutter
                  .CutUp(text,
                         [&](const PieceCutter::Cut& cut) {
                           cuts.emplace_back(std::string(cut.text), cut.id);
                           return absl::OkStatus();
                         })
                  .ok());
  return cuts;
}

std::string RandomText(size_t bytes, const std::string& letters, int seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::string text(bytes, ' ');
  for (char& c : text) c = letters[random() % letters.size()];
  return text;
}

std::map<std::string, int32_t> IdsByPiece(const SentencePieceModel& model) {
  std::map<std::string, int32_t> ids;
  for (size_t i = 1; i < model.pieces.size(); ++i) {
    ids[model.pieces[i].text] = static_cast<int32_t>(i);
  }
  return ids;
}

// The whole text in one table of the best sums.
Cuts BestOfAllWays(const SentencePieceModel& model, const std::string& text) {
  const std::map<std::string, int32_t> ids = IdsByPiece(model);
  const float unknown_score = model.pieces.back().score - 10;
  std::vector<float> sums(text.size() + 1, -1e30f);
  std::vector<std::pair<size_t, int32_t>> last(text.size() + 1);
  sums[0] = 0;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    for (size_t size = 1; size <= 5 && begin + size <= text.size(); ++size) {
      const auto found = ids.find(text.substr(begin, size));
      if (found == ids.end() && size > 1) continue;
      const bool known = found != ids.end();
      const float score =
          known ? model.pieces[found->second].score : unknown_score;
      const float sum = score + sums[begin];  // in float, as the original
      if (!(sum > sums[begin + size])) continue;
      sums[begin + size] = sum;
      last[begin + size] = {size, known ? found->second : kUnknown};
    }
  }
  Cuts cuts;
  for (size_t end = text.size(); end > 0; end -= last[end].first) {
    cuts.emplace_back(text.substr(end - last[end].first, last[end].first),
                      last[end].second);
  }
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

// The best pair of the whole text is joined, then the next.
Cuts JoinedOneByOne(const SentencePieceModel& model, const std::string& text) {
  const std::map<std::string, int32_t> ids = IdsByPiece(model);
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(1, c);
  while (true) {
    size_t best = parts.size();
    float best_score = -1e30f;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ids.find(parts[i] + parts[i + 1]);
      if (found == ids.end()) continue;
      if (model.pieces[found->second].score > best_score) {
        best_score = model.pieces[found->second].score;
        best = i;
      }
    }
    if (best == parts.size()) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(best) + 1);
  }
  Cuts cuts;
  for (const std::string& part : parts) {
    const auto found = ids.find(part);
    cuts.emplace_back(part, found == ids.end() ? kUnknown : found->second);
  }
  return cuts;
}

TEST(PieceCutter, LongTextIsCutByTheBestOfAllWays) {
  const SentencePieceModel model = Model(Algorithm::kUnigram);
  for (const char* letters : {"ab", "ab ", "aaab c", "c"}) {
    const std::string text = RandomText(40'000, letters, 1);
    EXPECT_EQ(CutUp(model, text), BestOfAllWays(model, text)) << letters;
  }
}

TEST(PieceCutter, PairsOfALongTextAreJoinedInTheOrderOfTheirScores) {
  const SentencePieceModel model = Model(Algorithm::kBpe);
  for (const char* letters : {"ab", "aaab c"}) {
    const std::string text = RandomText(6'000, letters, 2);
    EXPECT_EQ(CutUp(model, text), JoinedOneByOne(model, text)) << letters;
  }
}

TEST(PieceCutter, NoTextHasNoCuts) {
  EXPECT_EQ(CutUp(Model(Algorithm::kUnigram), ""), Cuts());
  EXPECT_EQ(CutUp(Model(Algorithm::kBpe), ""), Cuts());
}

// Counted: the text behind the first error is not cut. Its pieces would be
// given in one go if the text were cut as a whole.
TEST(PieceCutter, AnErrorEndsTheWorkWithinAFewKilobytes) {
  for (const Algorithm algorithm : {Algorithm::kUnigram, Algorithm::kBpe}) {
    const SentencePieceModel model = Model(algorithm);
    const PieceCutter cutter(model);
    const std::string text = RandomText(100'000, "ab ", 3);
    size_t given = 0;
    size_t last_end = 0;
    const absl::Status status =
        cutter.CutUp(text, [&](const PieceCutter::Cut& cut) {
          last_end = static_cast<size_t>(cut.text.data() - text.data()) +
                     cut.text.size();
          return ++given == 10 ? absl::OutOfRangeError("enough")
                               : absl::OkStatus();
        });
    EXPECT_EQ(status, absl::OutOfRangeError("enough"));
    EXPECT_EQ(given, 10u);
    EXPECT_LT(last_end, 8'000u);
  }
}

}  // namespace
}  // namespace txl
