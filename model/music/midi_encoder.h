#pragma once

// MIDI files as the ids of music models, by the rules of the code that the
// models come from:
//   REMI           YatingMusic/remi, utils.py and chord_recognition.py
//   compound-word  YatingMusic/compound-word-transformer, its remi-xl:
//   analyzer,
//                  midi2corpus and corpus2events, chords by chorder 0.1.4
//   musicautobot   bearpelican/musicautobot, numpy_encode.py over music21 6
// The first two read the first instrument of a file, as miditoolkit 0.1.16
// orders them, in ticks of 1/480 beat; files of other divisions are scaled.
// musicautobot reads all but the percussion of channel 10.
//
// compound-word's ids end with Bar_None and EOS_None where its vocabulary has
// them. To go on with the music, leave EOS_None out.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/text/vocabulary.h"

namespace txl {

class EventIds;

// What the ids don't say of the file, and how often.
struct LeftOut {
  std::string what;  // an event without an id ("Note On_109"), or a plain name
  int64_t count = 0;
};

struct MidiIds {
  std::vector<int32_t> ids;
  std::vector<LeftOut> left_out;  // ordered by name
};

// Thread-safe. Refers to nothing of the vocabulary that made it.
class MidiEncoder {
 public:
  // Errors: FAILED_PRECONDITION: the vocabulary isn't one of music.
  static absl::StatusOr<MidiEncoder> Make(const Vocabulary& vocabulary);

  // Errors: INVALID_ARGUMENT naming what is wrong with the file, as ParseMidi;
  // also when there is no note to encode.
  absl::StatusOr<MidiIds> Encode(absl::string_view midi_bytes) const;

 private:
  enum class Family { kRemi, kCompoundWord, kMusicautobot };

  MidiEncoder(Family family, std::shared_ptr<const EventIds> events);

  Family family_;
  std::shared_ptr<const EventIds> events_;
};

}  // namespace txl
