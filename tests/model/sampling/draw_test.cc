#include "model/sampling/draw.h"

#include <Random123/philox.h>

#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/sampling/statistics.h"

namespace txl {
namespace {

using ::testing::ElementsAre;

// Known answers that Random123 ships (kat_vectors, philox4x32 10).
TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_THAT(Philox({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                     {0xffffffff, 0xffffffff}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                     {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Philox, IsRandom123sOfRandomCountersAndKeys) {
  std::mt19937 random(1);
  const auto word = [&] { return static_cast<uint32_t>(random()); };
  for (int i = 0; i < 10000; ++i) {
    const std::array<uint32_t, 4> counter = {word(), word(), word(), word()};
    const std::array<uint32_t, 2> key = {word(), word()};
    const philox4x32_ctr_t words = {
        {counter[0], counter[1], counter[2], counter[3]}};
    const philox4x32_key_t keys = {{key[0], key[1]}};
    const philox4x32_ctr_t expected = philox4x32(words, keys);
    EXPECT_THAT(Philox(counter, key),
                ElementsAre(expected.v[0], expected.v[1], expected.v[2],
                            expected.v[3]));
  }
}

// The first known answer: seed 0, position 0, draw 0.
TEST(UniformDraw, IsTheUpper53BitsOfTheFirstTwoWords) {
  const uint64_t bits = 0xe169c58d6627e8d5 >> 11;
  EXPECT_EQ(UniformDraw(0, 0, 0), bits / std::pow(2.0, 53));
}

TEST(UniformDraw, CountsByPositionAndDrawUnderTheSeed) {
  const uint64_t seed = 0x0123456789abcdef;
  const int64_t position = 0x7edcba9876543210;
  const auto block =
      Philox({0x76543210, 0x7edcba98, 5, 0}, {0x89abcdef, 0x01234567});
  const uint64_t bits =
      (static_cast<uint64_t>(block[1]) << 32 | block[0]) >> 11;
  EXPECT_EQ(UniformDraw(seed, position, 5), std::ldexp(bits, -53));
}

TEST(UniformDraw, DiffersBySeedPositionAndDraw) {
  std::set<double> values;
  for (const uint64_t seed : {0ull, 1ull, 1ull << 32, ~0ull}) {
    for (const int64_t position : {0ll, 1ll, 1ll << 32}) {
      for (const uint32_t draw : {0u, 1u, ~0u}) {
        values.insert(UniformDraw(seed, position, draw));
      }
    }
  }
  EXPECT_EQ(values.size(), 4u * 3u * 3u);
}

TEST(UniformDraw, IsUniformOverPositionsSeedsAndDraws) {
  constexpr int kCells = 100;
  const std::vector<double> uniform(kCells, 1.0 / kCells);
  std::vector<int64_t> by_position(kCells), by_seed(kCells), by_draw(kCells);
  for (int i = 0; i < 200000; ++i) {
    ++by_position[static_cast<int>(UniformDraw(1, i, 0) * kCells)];
    ++by_seed[static_cast<int>(UniformDraw(i, 1, 0) * kCells)];
    ++by_draw[static_cast<int>(UniformDraw(1, 1, i) * kCells)];
  }
  EXPECT_GT(GoodnessOfFit(by_position, uniform), 0.001);
  EXPECT_GT(GoodnessOfFit(by_seed, uniform), 0.001);
  EXPECT_GT(GoodnessOfFit(by_draw, uniform), 0.001);
}

// Neighbouring seeds and positions: the pair falls into a 10 x 10 grid.
TEST(UniformDraw, IsIndependentAtNeighbouringSeedsAndPositions) {
  std::vector<int64_t> positions(100), seeds(100);
  const auto cell = [](double u, double v) {
    return static_cast<int>(u * 10) * 10 + static_cast<int>(v * 10);
  };
  for (int i = 0; i < 200000; ++i) {
    ++positions[cell(UniformDraw(3, i, 0), UniformDraw(3, i + 1, 0))];
    ++seeds[cell(UniformDraw(3, i, 0), UniformDraw(4, i, 0))];
  }
  const std::vector<double> uniform(100, 0.01);
  EXPECT_GT(GoodnessOfFit(positions, uniform), 0.001);
  EXPECT_GT(GoodnessOfFit(seeds, uniform), 0.001);
}

TEST(UniformSequence, CountsDrawsFromZero) {
  UniformSequence uniforms(11, 22);
  EXPECT_EQ(uniforms.Next(), UniformDraw(11, 22, 0));
  EXPECT_EQ(uniforms.Next(), UniformDraw(11, 22, 1));
  EXPECT_EQ(uniforms.Next(), UniformDraw(11, 22, 2));
}

TEST(PickByWeight, GivesEveryIndexItsShareInOrder) {
  const std::vector<double> weights = {1, 2, 1};
  EXPECT_EQ(PickByWeight(weights, 0.0), 0u);
  EXPECT_EQ(PickByWeight(weights, 0.2499), 0u);
  EXPECT_EQ(PickByWeight(weights, 0.25), 1u);
  EXPECT_EQ(PickByWeight(weights, 0.7499), 1u);
  EXPECT_EQ(PickByWeight(weights, 0.75), 2u);
  EXPECT_EQ(PickByWeight(weights, std::nextafter(1.0, 0.0)), 2u);
}

TEST(PickByWeight, NeverPicksAWeightOfZero) {
  const std::vector<double> weights = {0, 1, 0, 1, 0};
  const double last = std::nextafter(1.0, 0.0);
  for (const double u : {0.0, 0.4999, 0.5, 0.75, last}) {
    const size_t index = PickByWeight(weights, u);
    EXPECT_EQ(index, u < 0.5 ? 1u : 3u);
  }
}

TEST(PickByWeight, TakesWeightsOfAnyScale) {
  EXPECT_EQ(PickByWeight({1e-300, 3e-300}, 0.2), 0u);
  EXPECT_EQ(PickByWeight({1e-300, 3e-300}, 0.3), 1u);
  EXPECT_EQ(PickByWeight({5e300}, 0.999), 0u);
}

}  // namespace
}  // namespace txl
