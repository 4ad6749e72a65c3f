#pragma once

// MIDI files as the ids of music models, by the rules of the code that the
// models come from:
// - REMI: YatingMusic/remi, utils.py and chord_recognition.py;
// - compound-word: remi-xl of YatingMusic/compound-word-transformer, its
//   analyzer, midi2corpus and corpus2events, with the chords of chorder 0.1.4;
// - musicautobot: bearpelican/musicautobot, numpy_encode.py over music21 6.7.
// The first two read the first instrument of a file, as miditoolkit 0.1.16
// orders them, in ticks of 1/480 beat; files of other divisions are scaled.
// musicautobot reads all but the percussion of channel 10.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/music/event_ids.h"
#include "model/text/vocabulary.h"

namespace txl {

// The largest file that is worth reading.
inline constexpr size_t kMostMidiBytes = size_t{64} << 20;

// Thread-safe. Refers to nothing of the vocabulary that made it.
class MidiEncoder {
 public:
  // Errors: FAILED_PRECONDITION: the vocabulary isn't one of music.
  static absl::StatusOr<MidiEncoder> Make(const Vocabulary& vocabulary);

  // Errors: INVALID_ARGUMENT naming what is wrong with the file, as ParseMidi;
  // also when there is no note to encode.
  absl::StatusOr<MidiIds> Encode(absl::string_view midi_bytes) const;

  // What the original puts behind the ids of a whole piece that is trained on;
  // it isn't among those of Encode, so that they can be continued. -1: nothing.
  int32_t end_id() const;

 private:
  MidiEncoder(MusicFamily family, std::shared_ptr<const EventIds> events);

  MusicFamily family_;
  std::shared_ptr<const EventIds> events_;
};

}  // namespace txl
