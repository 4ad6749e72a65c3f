#pragma once

// The events of REMI, see midi_encoder.h.

#include "model/music/event_ids.h"
#include "model/music/instruments.h"

namespace txl {

// The first instrument's music; chords where the vocabulary has any.
// REQUIRES: there is an instrument.
void AddRemiEvents(const Instruments& music, EventList& events);

}  // namespace txl
