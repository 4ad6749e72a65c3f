#include "model/music/chords.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"

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

namespace {

// What a tick of each interval above the root adds to the score.
struct Template {
  absl::string_view quality;
  std::array<int, 12> weights;
};
constexpr Template kTemplates[] = {
    {"M", {10, -2, -1, -2, 10, -5, -2, 10, -2, -1, -2, 0}},
    {"m", {10, -2, -1, 10, -2, -5, -2, 10, -1, -2, 0, -2}},
    {"o", {10, -2, -1, 10, -2, -1, 10, -2, -2, 1, -1, -2}},
    {"+", {10, -2, -1, -2, 10, -1, -2, -2, 10, -1, -2, 0}},
    {"sus2", {10, -2, 5, -2, -1, -5, -2, 5, -2, -1, -2, 0}},
    {"sus4", {10, -2, -1, -2, -5, 5, -2, 5, -2, -1, -2, 0}}};

// A chord over a bass that is so far below its root is another one.
struct Inversion {
  absl::string_view heard;
  int interval;  // from the bass up to the root
  absl::string_view meant;
};
constexpr Inversion kInversions[] = {
    {"o", 4, "7"},   {"o", 3, "o7"},      {"M", 3, "m7"},     {"m", 4, "M7"},
    {"m", 3, "/o7"}, {"sus2", 5, "sus4"}, {"sus4", 7, "sus2"}};

// Groups of notes that begin together, and how many groups before a window
// still count in it, as get_notes_at has it.
using NotesByStart = std::vector<std::vector<MidiNote>>;
constexpr int64_t kGroupsBefore = 10;
constexpr int64_t kMostVisits = int64_t{1} << 24;  // of a note in a window

struct Chord {
  int root = -1;  // -1: none
  absl::string_view quality;
  int bass = -1;
  double score = -1;
};

// What sounds in a window, in ticks.
struct Sounding {
  std::array<int64_t, 12> classes = {};
  std::array<int64_t, 128> pitches = {};
};

int BassOf(const Sounding& sounding, int64_t window) {
  for (int pitch = 0; pitch < 128; ++pitch) {
    // A note that only touches the window would count in one of no length.
    if (8 * sounding.pitches[pitch] >= window) return pitch % 12;
  }
  return -1;
}

// The best template and root, the first of several.
Chord BestTemplate(const std::array<int64_t, 12>& classes) {
  Chord best;
  best.score = 0;
  for (int root = 0; root < 12; ++root) {
    if (classes[root] == 0) continue;
    for (const Template& tried : kTemplates) {
      int64_t score = 0;
      for (int i = 0; i < 12; ++i) {
        score += classes[(root + i) % 12] * tried.weights[i];
      }
      if (static_cast<double>(score) > best.score) {
        best = {root, tried.quality, -1, static_cast<double>(score)};
      }
    }
  }
  return best;
}

Chord WindowChord(const Sounding& sounding, int64_t window) {
  Chord chord = BestTemplate(sounding.classes);
  if (chord.score < static_cast<double>(10 * window)) return {};
  chord.bass = BassOf(sounding, window);
  if (chord.bass >= 0) {
    const int interval = (chord.root - chord.bass + 12) % 12;
    for (const Inversion& inversion : kInversions) {
      if (inversion.heard != chord.quality || inversion.interval != interval) {
        continue;
      }
      chord.root = chord.bass;
      chord.quality = inversion.meant;
      break;
    }
  }
  const int64_t major = sounding.classes[(chord.root + 11) % 12];
  const int64_t minor = sounding.classes[(chord.root + 10) % 12];
  if (chord.quality == "M" && major != minor) {
    chord.quality = major > minor ? "M7" : "7";
  } else if (chord.quality == "m" && minor > 0) {
    chord.quality = "m7";
  }
  return chord;
}

NotesByStart GroupNotes(const Instruments& music) {
  std::map<int64_t, std::vector<MidiNote>> by_start;
  for (const std::vector<MidiNote>& notes : music.notes) {
    for (const MidiNote& note : notes) by_start[note.start].push_back(note);
  }
  NotesByStart groups;
  for (auto& [start, notes] : by_start) {
    std::sort(notes.begin(), notes.end(),
              [](const auto& a, const auto& b) { return a.end > b.end; });
    groups.push_back(std::move(notes));
  }
  return groups;
}

// The chords of all windows of so many ticks.
absl::StatusOr<std::vector<Chord>> WindowChords(const NotesByStart& groups,
                                                int64_t ticks, int64_t window) {
  std::vector<Chord> chords;
  int64_t visits = 0;
  const auto size = static_cast<int64_t>(groups.size());
  int64_t first = 0;  // group that begins in or after the window
  for (int64_t start = 0; start < ticks; start += window) {
    while (first < size && groups[first].front().start < start) ++first;
    Sounding sounding;
    for (int64_t g = std::max<int64_t>(first - kGroupsBefore, 0);
         g < size && groups[g].front().start < start + window; ++g) {
      for (const MidiNote& note : groups[g]) {
        if (note.end < start) break;
        if (++visits > kMostVisits) {
          return Bad("the MIDI file has too many notes that sound at once");
        }
        const int64_t length =
            std::min(start + window, note.end) - std::max(start, note.start);
        sounding.classes[note.pitch % 12] += length;
        sounding.pitches[note.pitch] += length;
      }
    }
    chords.push_back(WindowChord(sounding, window));
  }
  return chords;
}

std::string NameOf(const Chord& chord) {
  if (chord.root < 0 || chord.bass < 0) return "N_N_N";
  return absl::StrCat(kPitchNames[chord.root], "_", chord.quality, "_",
                      kPitchNames[chord.bass]);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> BeatChords(const Instruments& music) {
  const NotesByStart groups = GroupNotes(music);
  TXL_ASSIGN_OR_RETURN(const std::vector<Chord> ones,
                       WindowChords(groups, music.ticks, kTicksPerBeat));
  TXL_ASSIGN_OR_RETURN(const std::vector<Chord> twos,
                       WindowChords(groups, music.ticks, 2 * kTicksPerBeat));
  std::vector<std::string> names;
  for (size_t beat = 0; beat < ones.size(); ++beat) {
    const Chord& both = twos[beat / 2];
    const double score = both.score / 2;
    const size_t first = beat / 2 * 2;
    const bool is_pair = first + 1 < ones.size();
    const bool apart =
        is_pair ? ones[first].score >= score && ones[first + 1].score >= score
                : ones[first].score > score;
    names.push_back(NameOf(apart ? ones[beat] : both));
  }
  return names;
}

}  // namespace txl
