#pragma once

// A MIDI file's notes by instrument, and its tempi, in ticks of 1/480 beat:
// what miditoolkit 0.1.16 reads (midi/parser.py).

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/music/midi_file.h"

namespace txl {

inline constexpr int64_t kTicksPerBeat = 480;
inline constexpr int64_t kTicksPerBar = 4 * kTicksPerBeat;

// Names by pitch % 12.
inline constexpr absl::string_view kPitchNames[] = {
    "C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"};

struct MidiNote {
  int64_t start = 0;
  int64_t end = 0;  // > start
  int pitch = 0;
  int velocity = 0;
};

struct TempoChange {
  int64_t start = 0;
  double bpm = 120;
};

struct Instruments {
  // Ordered by the first note that ends; no list is empty. Notes of one list
  // have one track, channel and program, and are ordered by their ends.
  std::vector<std::vector<MidiNote>> notes;
  // The first is at 0; later ones of other tracks may have earlier ticks.
  std::vector<TempoChange> tempi;
  int64_t ticks = 0;    // of the file, its end included; >= 1
  int64_t dropped = 0;  // notes without an end or without a length
};

// The end of a note ends all notes of its pitch, but those that begin with it.
Instruments ReadInstruments(const MidiFile& file);

}  // namespace txl
