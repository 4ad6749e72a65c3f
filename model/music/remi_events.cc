#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/music/chords.h"
#include "model/music/family_events.h"

namespace txl {
namespace {

constexpr int64_t kRemiGrid = kTicksPerBar / 16;
constexpr int64_t kDurationStep = 60, kDurations = 64;
constexpr int kRemiVelocityStep = 4;
// Stands for velocities that the published models were not trained on.
constexpr absl::string_view kLoudest = "Note Velocity_21";

// Moves notes to the grid, the earlier line of two. Its last line is before the
// last note, as in the original.
void Quantise(std::vector<MidiNote>& notes) {
  const int64_t last =
      std::max<int64_t>((notes.back().start - 1) / kRemiGrid, 0);
  for (MidiNote& note : notes) {
    const int64_t line = (note.start + (kRemiGrid - 1) / 2) / kRemiGrid;
    const int64_t shift = std::min(line, last) * kRemiGrid - note.start;
    note.start += shift;
    note.end += shift;
  }
}

struct BeatTempo {
  int64_t beat;
  int64_t bpm;
};

// The tempi that begin with a beat; others are left out.
std::vector<BeatTempo> TempiOfBeats(std::vector<TempoChange> tempi,
                                    EventList& events) {
  std::stable_sort(
      tempi.begin(), tempi.end(),
      [](const auto& a, const auto& b) { return a.start < b.start; });
  std::vector<BeatTempo> of_beats;
  for (const TempoChange& tempo : tempi) {
    if (tempo.start % kTicksPerBeat == 0) {
      of_beats.push_back(
          {tempo.start / kTicksPerBeat, static_cast<int64_t>(tempo.bpm)});
    } else {
      events.LeaveOut("tempo that begins within a beat");
    }
  }
  return of_beats;
}

std::string PositionEvent(int64_t tick) {
  return absl::StrCat("Position_", tick % kTicksPerBar / kRemiGrid + 1, "/16");
}

class RemiWriter {
 public:
  RemiWriter(const Instruments& music, EventList& events)
      : events_(events), notes_(music.notes.front()) {
    std::stable_sort(
        notes_.begin(), notes_.end(), [](const MidiNote& a, const MidiNote& b) {
          return a.start != b.start ? a.start < b.start : a.pitch < b.pitch;
        });
    Quantise(notes_);
    for (const TempoChange& tempo : music.tempi) {
      last_tempo_ = std::max(last_tempo_, tempo.start);
    }
    tempi_ = TempiOfBeats(music.tempi, events);
    if (events.events().HasPrefix("Chord_")) chords_ = RemiChords(notes_);
  }

  void Write() && {
    const int64_t bars = (notes_.back().end + kTicksPerBar - 1) / kTicksPerBar;
    for (auto note = notes_.begin(); note != notes_.end();) {
      const int64_t bar = note->start / kTicksPerBar;
      if (bar >= bars) {
        events_.LeaveOut("note after the last bar", notes_.end() - note);
        return;
      }
      events_.Add({"Bar_None"});
      for (int64_t beat = 4 * bar; beat < 4 * (bar + 1); ++beat) {
        AddChord(beat * kTicksPerBeat);
        if (beat * kTicksPerBeat <= last_tempo_) AddTempo(beat);
        for (; note != notes_.end() && note->start < (beat + 1) * kTicksPerBeat;
             ++note) {
          AddNote(*note);
        }
      }
    }
  }

 private:
  void AddChord(int64_t tick) {
    while (chord_ < chords_.size() && chords_[chord_].start < tick) ++chord_;
    if (chord_ == chords_.size() || chords_[chord_].start > tick) return;
    events_.Add(
        {PositionEvent(tick), absl::StrCat("Chord_", chords_[chord_].name)});
  }

  void AddTempo(int64_t beat) {
    while (tempo_ + 1 < tempi_.size() && tempi_[tempo_ + 1].beat <= beat) {
      ++tempo_;
    }
    const int64_t bpm = tempi_[tempo_].bpm;
    // The original takes 210 for none of its classes, and repeats the tempo
    // that it wrote before.
    if (bpm != 210) written_ = std::clamp<int64_t>(bpm, 30, 209);
    const char* const names[] = {"slow", "mid", "fast"};
    events_.Add({PositionEvent(beat * kTicksPerBeat),
                 absl::StrCat("Tempo Class_", names[(written_ - 30) / 60]),
                 absl::StrCat("Tempo Value_", (written_ - 30) % 60)});
  }

  void AddNote(const MidiNote& note) {
    std::string velocity =
        absl::StrCat("Note Velocity_", note.velocity / kRemiVelocityStep);
    if (!events_.events().Has(velocity)) {
      events_.LeaveOut(velocity);
      velocity = std::string(kLoudest);
    }
    const int64_t duration =
        (note.end - note.start + kDurationStep / 2 - 1) / kDurationStep;
    events_.Add(
        {PositionEvent(note.start), velocity,
         absl::StrCat("Note On_", note.pitch),
         absl::StrCat("Note Duration_",
                      std::clamp<int64_t>(duration, 1, kDurations) - 1)});
  }

  EventList& events_;
  std::vector<MidiNote> notes_;
  std::vector<BeatTempo> tempi_;
  std::vector<NamedChord> chords_;
  int64_t last_tempo_ = 0;
  size_t chord_ = 0, tempo_ = 0;
  int64_t written_ = 209;  // the tempo that was written last
};

}  // namespace

void AddRemiEvents(const Instruments& music, EventList& events) {
  RemiWriter(music, events).Write();
}

}  // namespace txl
