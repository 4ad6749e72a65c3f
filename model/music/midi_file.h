#pragma once

// Standard MIDI Files 1.0, formats 0 and 1: the notes, programs and tempi.

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

inline constexpr int64_t kMostMidiBeats = 1 << 15;
inline constexpr int kPercussionChannel = 9;  // channel 10 for musicians

struct MidiEvent {
  enum class Kind : uint8_t { kNoteOn, kNoteOff, kProgram, kTempo };

  int64_t tick = 0;   // since the beginning
  int32_t value = 0;  // velocity >= 1, program, or microseconds per beat >= 1
  Kind kind = Kind::kNoteOn;
  uint8_t channel = 0;  // 0 to 15
  uint8_t pitch = 0;    // 0 to 127
};

struct MidiFile {
  int64_t ticks_per_beat = 0;  // >= 1
  int64_t last_tick = 0;       // of any event, also of those left out here
  std::vector<std::vector<MidiEvent>> tracks;
};

// A note-on of velocity 0 is a note-off. Chunks of other kinds and what follows
// the last track are skipped. Memory and time are in proportion to the file.
// Errors: INVALID_ARGUMENT: not such a file, cut off, a byte where no event has
// it, SMPTE time, format 2, more than kMostMidiBeats beats.
absl::StatusOr<MidiFile> ParseMidi(absl::string_view bytes);

}  // namespace txl
