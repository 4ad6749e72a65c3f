#include "model/music/remi_chords.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace txl {
namespace {

using PitchSet = std::bitset<128>;

constexpr int64_t kLongBeats = 4, kShortBeats = 2;
constexpr int kNoScore = -100;  // of a root without one third
// What each interval above the root adds to the score of a quality.
struct Quality {
  absl::string_view name;
  std::array<int, 12> points;
};
constexpr Quality kMajor = {"maj",
                            {0, -2, -1, -2, 0, -1, -2, 1, -2, -1, -2, 0}};
constexpr Quality kMinor = {"min",
                            {0, -2, -1, 0, -2, -1, -2, 1, -1, -2, 0, -2}};
constexpr Quality kDiminished = {"dim",
                                 {0, -2, -1, 0, -2, -1, 0, -2, -2, 1, -1, -2}};
constexpr Quality kAugmented = {"aug",
                                {0, -2, -1, -2, 0, -1, -2, -2, 0, -1, -2, 0}};
constexpr Quality kDominant = {"dom",
                               {0, -2, -1, -2, 0, -1, -2, 0, -2, -1, 0, -2}};
constexpr Quality kNone = {"None", {}};

// REQUIRES: `intervals` above the root that sound.
const Quality& QualityOf(const std::bitset<12>& intervals) {
  if (intervals[3] == intervals[4]) return kNone;
  if (intervals[3]) return intervals[6] ? kDiminished : kMinor;
  if (intervals[8]) return kAugmented;
  return intervals[7] && intervals[10] ? kDominant : kMajor;
}

struct FoundChord {
  std::string name = "N:N";
  int score = 0;
};

FoundChord ChordOf(const PitchSet& sounding) {
  if (sounding.none()) return {};
  std::bitset<12> classes;
  for (size_t pitch = 0; pitch < sounding.size(); ++pitch) {
    if (sounding[pitch]) classes.set(pitch % 12);
  }
  FoundChord best;
  std::bitset<12> tried;
  // From the bass upwards, so that of equal roots the lowest wins.
  for (size_t pitch = 0; pitch < sounding.size(); ++pitch) {
    const size_t root = pitch % 12;
    if (!sounding[pitch] || tried[root]) continue;
    const bool is_first = tried.none();
    tried.set(root);
    const std::bitset<12> intervals = classes >> root | classes << (12 - root);
    const Quality& quality = QualityOf(intervals);
    int score = quality.name == kNone.name ? kNoScore : 0;
    for (size_t i = 0; i < 12; ++i) {
      if (intervals[i]) score += quality.points[i];
    }
    if (is_first || score > best.score) {
      best = {absl::StrCat(kPitchNames[root], ":", quality.name), score};
    }
  }
  return best;
}

// The pitches that sound in each beat. REQUIRES: notes ordered by their starts.
std::vector<PitchSet> SoundingByBeat(absl::Span<const MidiNote> notes) {
  std::vector<PitchSet> beats;
  std::array<int64_t, 128> done = {};  // beats of the pitch that are set
  for (const MidiNote& note : notes) {
    const int64_t end = (note.end - 1) / kTicksPerBeat + 1;
    if (end > static_cast<int64_t>(beats.size())) beats.resize(end);
    int64_t& beat = done[note.pitch];
    beat = std::max(beat, note.start / kTicksPerBeat);
    for (; beat < end; ++beat) beats[beat].set(note.pitch);
  }
  return beats;
}

bool IsNone(const NamedChord& chord) {
  return absl::EndsWith(chord.name, ":None");
}

}  // namespace

std::vector<NamedChord> RemiChords(absl::Span<const MidiNote> notes) {
  const std::vector<PitchSet> beats = SoundingByBeat(notes);
  const int64_t size = static_cast<int64_t>(beats.size());
  const auto chord_at = [&](int64_t beat, int64_t length) {
    PitchSet sounding;
    for (int64_t b = beat; b < std::min(beat + length, size); ++b) {
      sounding |= beats[b];
    }
    return ChordOf(sounding);
  };
  std::vector<NamedChord> chords;
  for (int64_t beat = 0; beat < size;) {
    const FoundChord longer = chord_at(beat, kLongBeats);
    const FoundChord shorter = chord_at(beat, kShortBeats);
    const bool is_short = shorter.score > longer.score;
    chords.push_back(
        {beat * kTicksPerBeat, is_short ? shorter.name : longer.name});
    beat += is_short ? kShortBeats : kLongBeats;
  }
  // The first chord begins with the music.
  const auto first = std::find_if_not(chords.begin(), chords.end(), IsNone);
  if (first != chords.end()) first->start = 0;
  chords.erase(std::remove_if(chords.begin(), chords.end(), IsNone),
               chords.end());
  return chords;
}

}  // namespace txl
