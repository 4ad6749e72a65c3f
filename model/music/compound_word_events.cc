#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/music/chords.h"
#include "model/music/family_events.h"

namespace txl {
namespace {

constexpr int64_t kLineTicks = kTicksPerBeat / 4;
constexpr int kVelocityBin = 2, kLeastVelocity = 40;
constexpr int64_t kLeastBpm = 32, kMostBpm = 224, kBpmStep = 3;

// The closest line of the grid, the even one of two.
int64_t Line(int64_t tick) {
  return static_cast<int64_t>(
      std::nearbyint(static_cast<double>(tick) / kLineTicks));
}

// The closest bin, the lower one of two.
int64_t BinnedBpm(double bpm) {
  const double bin = std::ceil((bpm - kLeastBpm) / kBpmStep - 0.5);
  constexpr double kBins = (kMostBpm - kLeastBpm) / kBpmStep;
  return kLeastBpm +
         kBpmStep * static_cast<int64_t>(std::clamp(bin, 0.0, kBins));
}

// A chord or a tempo and the line that it stands at, ordered by lines. Of
// several at a line the first counts.
template <typename Value>
class AtLines {
 public:
  void Put(int64_t line, Value value) {
    if (values_.empty() || values_.back().first != line) {
      values_.emplace_back(line, std::move(value));
    }
  }

  // REQUIRES: lines in order.
  const Value* At(int64_t line) {
    while (next_ < values_.size() && values_[next_].first < line) ++next_;
    const bool found = next_ < values_.size() && values_[next_].first == line;
    return found ? &values_[next_].second : nullptr;
  }

 private:
  std::vector<std::pair<int64_t, Value>> values_;
  size_t next_ = 0;
};

class CompoundWordWriter {
 public:
  CompoundWordWriter(const Instruments& music, EventList& events)
      : events_(events), notes_(music.notes.front()) {
    std::stable_sort(notes_.begin(), notes_.end(),
                     [](const MidiNote& a, const MidiNote& b) {
                       return std::tuple(a.start, -a.pitch, a.velocity) <
                              std::tuple(b.start, -b.pitch, b.velocity);
                     });
    const int64_t first_bar =
        Line(notes_.front().start) * kLineTicks / kTicksPerBar;
    offset_ = first_bar * kTicksPerBar;
    bars_ = (notes_.back().start + kTicksPerBar - 1) / kTicksPerBar - first_bar;
    PutTempi(music.tempi);
  }

  absl::Status PutChords(const Instruments& music) {
    TXL_ASSIGN_OR_RETURN(const std::vector<std::string> chords,
                         BeatChords(music));
    for (size_t beat = 0; beat < chords.size(); ++beat) {
      if (beat > 0 && chords[beat] == chords[beat - 1]) continue;
      const std::string& chord = chords[beat];  // root_quality_bass
      chords_.Put(LineInMusic(static_cast<int64_t>(beat) * kTicksPerBeat),
                  chord.substr(0, chord.rfind('_')));
    }
    return absl::OkStatus();
  }

  void Write() && {
    size_t note = 0;
    for (int64_t bar = 0; bar < bars_; ++bar) {
      events_.Add({"Bar_None"});
      for (int64_t line = 16 * bar; line < 16 * (bar + 1); ++line) {
        note = WriteLine(line, note);
      }
    }
    events_.LeaveOut("note after the last bar",
                     static_cast<int64_t>(notes_.size() - note));
    events_.Add({"Bar_None"});
  }

 private:
  int64_t LineInMusic(int64_t tick) const {
    return Line(std::max<int64_t>(tick - offset_, 0));
  }

  void PutTempi(std::vector<TempoChange> tempi) {
    std::stable_sort(
        tempi.begin(), tempi.end(),
        [](const auto& a, const auto& b) { return a.start < b.start; });
    double before = 0;
    for (const TempoChange& tempo : tempi) {
      if (tempo.bpm == before) continue;
      before = tempo.bpm;
      tempi_.Put(LineInMusic(tempo.start), BinnedBpm(tempo.bpm));
    }
  }

  // Writes what begins at `line`; `note` is the first that may. Returns the
  // first note after the line.
  size_t WriteLine(int64_t line, size_t note) {
    const std::string* chord = chords_.At(line);
    const int64_t* bpm = tempi_.At(line);
    const size_t begin = note;
    while (note < notes_.size() && Line(notes_[note].start - offset_) <= line) {
      ++note;
    }
    if (chord == nullptr && bpm == nullptr && note == begin) return note;
    events_.Add({absl::StrCat("Beat_", line % 16)});
    if (chord != nullptr) events_.Add({absl::StrCat("Chord_", *chord)});
    if (bpm != nullptr) {
      events_.Add({absl::StrCat("Tempo_", events_.Closest("Tempo", *bpm))});
    }
    for (size_t i = begin; i < note; ++i) WriteNote(notes_[i]);
    return note;
  }

  void WriteNote(const MidiNote& note) {
    const int velocity =
        std::max(note.velocity / kVelocityBin * kVelocityBin, kLeastVelocity);
    const int64_t duration =
        Line(std::min(note.end - note.start, kTicksPerBar)) * kLineTicks;
    events_.Add({absl::StrCat("Note_Pitch_", note.pitch),
                 absl::StrCat("Note_Velocity_",
                              events_.Closest("Note_Velocity", velocity)),
                 absl::StrCat("Note_Duration_",
                              events_.Closest("Note_Duration", duration))});
  }

  EventList& events_;
  std::vector<MidiNote> notes_;
  int64_t offset_ = 0;  // ticks of the bars before the first note
  int64_t bars_ = 0;    // those in which a note begins before their end
  AtLines<std::string> chords_;
  AtLines<int64_t> tempi_;
};

}  // namespace

absl::Status AddCompoundWordEvents(const Instruments& music,
                                   EventList& events) {
  CompoundWordWriter writer(music, events);
  if (events.events().HasPrefix("Chord_")) {
    TXL_RETURN_IF_ERROR(writer.PutChords(music));
  }
  std::move(writer).Write();
  return absl::OkStatus();
}

}  // namespace txl
