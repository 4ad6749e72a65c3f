#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <list>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/music/family_events.h"

namespace txl {
namespace {

using Kind = MidiEvent::Kind;

constexpr int64_t kStepsPerBeat = 4;
constexpr int64_t kMostNoteSteps = 128, kMostRestSteps = 160;
constexpr int kLowestPitch = 21, kHighestPitch = 107;

// A note in ticks of the file.
struct TrackNote {
  int64_t start, end;
  int pitch;
};

// A note in the order in which a text has notes.
struct StepNote {
  int64_t step;
  int pitch;
  size_t part;
  int64_t steps;  // of its length; 0: no note, in music21's sense

  auto Place() const { return std::tuple(step, -pitch, part); }
};

// The notes of a track but percussion, by their starts: an end belongs to the
// first note of its pitch and channel that has none.
std::vector<TrackNote> PairNotes(const std::vector<MidiEvent>& track,
                                 EventList& events) {
  std::vector<TrackNote> notes;
  std::map<std::pair<int, int>, std::queue<size_t, std::list<size_t>>> open;
  int64_t percussion = 0;
  for (const MidiEvent& event : track) {
    const std::pair<int, int> key = {event.channel, event.pitch};
    if (event.channel == kPercussionChannel) {
      percussion += event.kind == Kind::kNoteOn;
    } else if (event.kind == Kind::kNoteOn) {
      open[key].push(notes.size());
      notes.push_back({event.tick, -1, event.pitch});
    } else if (event.kind == Kind::kNoteOff && !open[key].empty()) {
      notes[open[key].front()].end = event.tick;
      open[key].pop();
    }
  }
  const auto endless =
      std::remove_if(notes.begin(), notes.end(),
                     [](const TrackNote& note) { return note.end < 0; });
  events.LeaveOut("note without an end", notes.end() - endless);
  events.LeaveOut("note of percussion", percussion);
  notes.erase(endless, notes.end());
  return notes;
}

// `beats` on the closer one of music21's grids, of 1/4 and of 1/3 beat, and
// from there on the grid of steps.
int64_t Steps(double beats) {
  struct Match {
    int64_t error;  // in 1e-7 beats, as precise as music21 compares
    double beats;
    auto Order() const { return std::tuple(error, beats); }
  };
  const auto closest = [beats](double unit) {
    const double low = unit * std::floor(beats / unit);
    const double high = unit * (std::floor(beats / unit) + 1);
    const bool down = beats >= low && beats <= low + unit / 2;
    const double match = down ? low : high;
    return Match{std::llround(std::abs(beats - match) * 1e7), match};
  };
  const Match fourth = closest(1.0 / 4), third = closest(1.0 / 3);
  return std::llround((fourth.Order() < third.Order() ? fourth : third).beats *
                      kStepsPerBeat);
}

// Brings the notes of a track to the grid. Notes that begin and end together
// are a chord: they begin as its first note, and last from the begin of its
// last note to the end of its first, as music21 reads them.
class Quantiser {
 public:
  Quantiser(const std::vector<TrackNote>& notes, int64_t ticks_per_beat,
            size_t part, std::vector<StepNote>& out)
      : notes_(notes),
        ticks_per_beat_(static_cast<double>(ticks_per_beat)),
        part_(part),
        out_(out) {}

  void Run() && {
    std::vector<bool> in_chord(notes_.size());
    size_t window_end = 0;
    for (size_t first = 0; first < notes_.size(); ++first) {
      // The notes that begin with `first`, by their ends.
      for (; window_end < notes_.size() &&
             IsClose(notes_[window_end].start, notes_[first].start);
           ++window_end) {
        window_.emplace(notes_[window_end].end, window_end);
      }
      window_.erase({notes_[first].end, first});
      if (in_chord[first]) continue;
      std::vector<size_t> chord = {first};
      for (auto other = window_.lower_bound({LeastClose(first), 0});
           other != window_.end() && IsClose(other->first, notes_[first].end);
           ++other) {
        chord.push_back(other->second);
        in_chord[other->second] = true;
      }
      Emit(chord);
    }
  }

 private:
  bool IsClose(int64_t a, int64_t b) const {
    return static_cast<double>(std::abs(a - b)) <= ticks_per_beat_ / 16;
  }

  int64_t LeastClose(size_t note) const {
    return static_cast<int64_t>(std::ceil(
        static_cast<double>(notes_[note].end) - ticks_per_beat_ / 16));
  }

  void Emit(const std::vector<size_t>& chord) {
    const TrackNote& first = notes_[chord.front()];
    const size_t last = *std::max_element(chord.begin(), chord.end());
    const int64_t ticks = first.end - notes_[last].start;
    const int64_t step =
        Steps(static_cast<double>(first.start) / ticks_per_beat_);
    // A chord whose last note begins after the end of its first is short.
    const int64_t steps =
        ticks == 0
            ? 0
            : std::max<int64_t>(
                  1, Steps(static_cast<double>(std::max<int64_t>(ticks, 0)) /
                           ticks_per_beat_));
    for (const size_t note : chord) {
      out_.push_back({step, notes_[note].pitch, part_, steps});
    }
  }

  const std::vector<TrackNote>& notes_;
  const double ticks_per_beat_;
  const size_t part_;
  std::vector<StepNote>& out_;
  std::set<std::pair<int64_t, size_t>> window_;
};

// Keeps the longest of the notes at each place.
std::vector<StepNote> LongestOfEachPlace(std::vector<StepNote> notes) {
  std::sort(notes.begin(), notes.end(),
            [](const StepNote& a, const StepNote& b) {
              return std::tuple(a.Place(), -a.steps) <
                     std::tuple(b.Place(), -b.steps);
            });
  notes.erase(std::unique(notes.begin(), notes.end(),
                          [](const StepNote& a, const StepNote& b) {
                            return a.Place() == b.Place();
                          }),
              notes.end());
  return notes;
}

void AddRest(int64_t steps, EventList& events) {
  while (steps > 0) {
    const int64_t part = std::min(steps, kMostRestSteps);
    events.Add({"xxsep", absl::StrCat("d", part)});
    steps -= part;
  }
}

}  // namespace

bool AddStepEvents(const MidiFile& file, EventList& events) {
  std::vector<StepNote> notes;
  int64_t count = 0;
  for (size_t part = 0; part < file.tracks.size(); ++part) {
    const std::vector<TrackNote> paired = PairNotes(file.tracks[part], events);
    count += static_cast<int64_t>(paired.size());
    Quantiser(paired, file.ticks_per_beat, part, notes).Run();
  }
  if (notes.empty()) return false;
  notes = LongestOfEachPlace(std::move(notes));
  events.LeaveOut("note that a longer one covers",
                  count - static_cast<int64_t>(notes.size()));
  events.Add({"xxbos", "xxpad"});
  int64_t now = 0;
  for (const StepNote& note : notes) {
    if (note.steps == 0) {
      events.LeaveOut("note without a length");
      continue;
    }
    if (note.pitch < kLowestPitch || note.pitch > kHighestPitch) {
      events.LeaveOut(absl::StrCat("n", note.pitch));
      continue;
    }
    AddRest(note.step - now, events);
    now = note.step;
    if (note.steps > kMostNoteSteps) events.LeaveOut("end of a longer note");
    events.Add({absl::StrCat("n", note.pitch),
                absl::StrCat("d", std::min(note.steps, kMostNoteSteps))});
  }
  return true;
}

}  // namespace txl
