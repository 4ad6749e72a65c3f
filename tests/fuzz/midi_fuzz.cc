// Any bytes as a MIDI file, to each family of music models.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "model/music/midi_encoder.h"
#include "model/text/symbol_vocabulary.h"

namespace {

std::vector<txl::MidiEncoder> Encoders() {
  std::vector<txl::MidiEncoder> encoders;
  for (const std::vector<std::string>& events :
       {std::vector<std::string>{"Bar_None", "Position_1/16", "Note%20On_60",
                                 "Chord_C:maj"},
        std::vector<std::string>{"Bar_None", "Beat_0", "Note_Pitch_60",
                                 "Chord_C_M"},
        std::vector<std::string>{"xxbos", "xxpad", "xxsep", "n60", "d1"}}) {
    encoders.push_back(*txl::MidiEncoder::Make(
        txl::SymbolVocabulary("events", events, txl::SymbolRules())));
  }
  return encoders;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<txl::MidiEncoder>& encoders =
      *new std::vector<txl::MidiEncoder>(Encoders());
  for (const txl::MidiEncoder& encoder : encoders) {
    encoder.Encode({reinterpret_cast<const char*>(data), size})
        .status()
        .IgnoreError();
  }
  return 0;
}
