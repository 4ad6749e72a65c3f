#pragma once

// The chords of music, as each family finds them.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/music/instruments.h"

namespace txl {

// By the rules of REMI (YatingMusic/remi, chord_recognition.py).

struct NamedChord {
  int64_t start = 0;
  std::string name;
};

// Ordered by their starts, which are multiples of a beat; "C:maj", or "N:N" for
// silence. REQUIRES: notes end within kMostMidiBeats + 1 beats.
std::vector<NamedChord> RemiChords(absl::Span<const MidiNote> notes);

// By chorder 0.1.4 (dechorder.py), the chord of every beat.

// Root, quality and bass of each beat ("C_M_C", "A#_/o7_E"); "N_N_N" where no
// chord is heard. Errors: INVALID_ARGUMENT: far more notes sound at once than
// in music, which would take long.
absl::StatusOr<std::vector<std::string>> BeatChords(const Instruments& music);

}  // namespace txl
