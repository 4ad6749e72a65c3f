#include "model/music/midi_encoder.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "model/music/event_ids.h"
#include "model/music/family_events.h"
#include "model/music/instruments.h"
#include "model/music/midi_file.h"

namespace txl {
namespace {

absl::Status NotOfMusic(const Vocabulary& vocabulary) {
  return absl::FailedPreconditionError(
      absl::StrCat("MIDI needs a model of music (REMI, compound-word or "
                   "musicautobot); this vocabulary is of kind ",
                   vocabulary.kind()));
}

absl::Status NoNote() { return Bad("the MIDI file has no note to encode"); }

}  // namespace

MidiEncoder::MidiEncoder(MusicFamily family,
                         std::shared_ptr<const EventIds> events)
    : family_(family), events_(std::move(events)) {}

absl::StatusOr<MidiEncoder> MidiEncoder::Make(const Vocabulary& vocabulary) {
  // A vocabulary of text can be large, and a server asks whenever it starts.
  if (vocabulary.kind() != "events") return NotOfMusic(vocabulary);
  auto events = std::make_shared<const EventIds>(vocabulary);
  const std::optional<MusicFamily> family = FamilyOf(*events);
  if (!family.has_value()) return NotOfMusic(vocabulary);
  return MidiEncoder(*family, std::move(events));
}

int32_t MidiEncoder::end_id() const {
  return family_ == MusicFamily::kCompoundWord ? events_->Find("EOS_None") : -1;
}

absl::StatusOr<MidiIds> MidiEncoder::Encode(
    absl::string_view midi_bytes) const {
  TXL_ASSIGN_OR_RETURN(const MidiFile file, ParseMidi(midi_bytes));
  EventList events(*events_);
  if (family_ == MusicFamily::kMusicautobot) {
    if (!AddStepEvents(file, events)) return NoNote();
    return events.Take();
  }
  const Instruments music = ReadInstruments(file);
  if (music.notes.empty()) return NoNote();
  events.LeaveOut("note without an end", music.dropped);
  for (size_t i = 1; i < music.notes.size(); ++i) {
    events.LeaveOut("note of another instrument than the first",
                    static_cast<int64_t>(music.notes[i].size()));
  }
  if (family_ == MusicFamily::kRemi) {
    AddRemiEvents(music, events);
  } else {
    TXL_RETURN_IF_ERROR(AddCompoundWordEvents(music, events));
  }
  return events.Take();
}

}  // namespace txl
