#pragma once

// The events of musicautobot, see midi_encoder.h.

#include "model/music/event_ids.h"
#include "model/music/midi_file.h"

namespace txl {

// False: the file has no note but percussion.
bool AddStepEvents(const MidiFile& file, EventList& events);

}  // namespace txl
