#pragma once

// The events of each family of music (midi_encoder.h), in files of their own:
// NAME_events.cc.

#include "absl/status/status.h"
#include "model/music/event_ids.h"
#include "model/music/instruments.h"
#include "model/music/midi_file.h"

namespace txl {

// REMI: the first instrument's music; chords where the vocabulary has any.
// REQUIRES: there is an instrument.
void AddRemiEvents(const Instruments& music, EventList& events);

// compound-word's REMI: the first instrument's music; chords of all instruments
// where the vocabulary has any. REQUIRES: there is an instrument. Errors: those
// of BeatChords.
absl::Status AddCompoundWordEvents(const Instruments& music, EventList& events);

// musicautobot. False: the file has no note but percussion.
bool AddStepEvents(const MidiFile& file, EventList& events);

}  // namespace txl
