// The originals' own ids, data/README.md.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/music/midi_encoder.h"
#include "tests/model/music/music_data.h"

namespace txl {
namespace {

class GoldenMusic : public testing::TestWithParam<const char*> {};

TEST_P(GoldenMusic, HasTheIdsOfTheOriginalEncoder) {
  const std::string family = GetParam();
  const auto vocabulary = FamilyVocabulary(family);
  const auto encoder = MidiEncoder::Make(*vocabulary);
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  const auto expected = nlohmann::json::parse(MusicFile("expected.json"));
  ASSERT_EQ(expected.size(), 24u);
  for (const auto& [file, ids] : expected.items()) {
    const auto found = encoder->Encode(MusicFile(file));
    ASSERT_TRUE(found.ok()) << file << ": " << found.status();
    std::vector<int32_t> whole = found->ids;
    if (encoder->end_id() >= 0) whole.push_back(encoder->end_id());
    EXPECT_EQ(whole, ids[family].get<std::vector<int32_t>>()) << file;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenMusic,
                         testing::Values("remi", "remi_chords", "compound_word",
                                         "musicautobot"));

}  // namespace
}  // namespace txl
