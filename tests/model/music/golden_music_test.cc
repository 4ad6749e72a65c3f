// The originals' own ids, data/README.md.

#include <nlohmann/json.hpp>
#include <string>

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
    EXPECT_EQ(found->ids, ids[family].get<std::vector<int32_t>>()) << file;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GoldenMusic,
                         testing::Values("remi", "remi_chords", "compound_word",
                                         "musicautobot"));

}  // namespace
}  // namespace txl
