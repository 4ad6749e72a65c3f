#pragma once

// Models of few events, and small MIDI files for them.

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/music/midi_encoder.h"
#include "model/text/symbol_vocabulary.h"
#include "tests/server/api/convert_fixture.h"

namespace txl {

// REMI's events for kOneNote, in their order there.
inline const SymbolVocabulary& RemiVocabulary() {
  static const auto& vocabulary = *new SymbolVocabulary(
      "events",
      {"Bar_None", "Position_1/16", "Tempo%20Class_mid", "Tempo%20Value_30",
       "Note%20Velocity_16", "Note%20On_60", "Note%20Duration_7"},
      SymbolRules());
  return vocabulary;
}

inline ModelFacts ModelOf(const Vocabulary& vocabulary) {
  ModelFacts facts = ByteModel();
  facts.config.vocab_size = vocabulary.size();
  facts.vocabulary = &vocabulary;
  facts.midi = MidiEncoder::Make(vocabulary);
  return facts;
}

// Format 0, a track of `events`, 480 ticks a beat.
inline std::string MidiOf(absl::string_view events) {
  std::string file("MThd\0\0\0\6\0\0\0\1\1\340MTrk\0\0\0", 21);
  const std::string end("\0\xff\x2f\0", 4);
  file += static_cast<char>(events.size() + end.size());
  return file + std::string(events) + end;
}

// A beat long; 120 beats a minute, as where a file has no tempo.
inline std::string NoteOf(char pitch) {
  return std::string("\0\x90", 2) + pitch + "\x40\x83\x60\x80" + pitch +
         std::string(1, '\0');
}

// A note for which RemiVocabulary has no event, with kOneNote's.
inline const std::string kUnknownNote =
    MidiOf(std::string("\0\x90\x6d\x40", 4) + NoteOf(60) +
           std::string("\0\x80\x6d\0", 4));

// REMI: velocity 64 is bin 64 / 4, a beat the eighth of eighths of a beat; 120
// a minute are 30 above the lowest of the middle class.
inline const std::string kOneNote = MidiOf(NoteOf(60));
inline const std::vector<int32_t> kOneNoteIds = {0, 1, 2, 3, 1, 4, 5, 6};

}  // namespace txl
