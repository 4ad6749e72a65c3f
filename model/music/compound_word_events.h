#pragma once

// The events of compound-word's REMI, see midi_encoder.h.

#include "absl/status/status.h"
#include "model/music/event_ids.h"
#include "model/music/instruments.h"

namespace txl {

// The first instrument's music; chords of all instruments where the vocabulary
// has any. REQUIRES: there is an instrument. Errors: those of BeatChords.
absl::Status AddCompoundWordEvents(const Instruments& music, EventList& events);

}  // namespace txl
