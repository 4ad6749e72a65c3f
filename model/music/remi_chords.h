#pragma once

// The chords of music by the rules of REMI (YatingMusic/remi,
// chord_recognition.py).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "model/music/instruments.h"

namespace txl {

struct NamedChord {
  int64_t start = 0;
  std::string name;
};

// Ordered by their starts, which are multiples of a beat; "C:maj", or "N:N" for
// silence. REQUIRES: notes end within kMostMidiBeats + 1 beats.
std::vector<NamedChord> RemiChords(absl::Span<const MidiNote> notes);

}  // namespace txl
