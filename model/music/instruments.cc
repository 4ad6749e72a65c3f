#include "model/music/instruments.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>

namespace txl {
namespace {

using Kind = MidiEvent::Kind;

constexpr double kMicrosecondsPerMinute = 60e6;

// A note that has begun: its tick in the file, and its velocity.
struct OpenNote {
  int64_t tick;
  int velocity;
};

class InstrumentReader {
 public:
  explicit InstrumentReader(const MidiFile& file) : file_(file) {
    read_.tempi.push_back({});
    read_.ticks = Scaled(file.last_tick) + 1;
  }

  Instruments Read() && {
    for (const std::vector<MidiEvent>& track : file_.tracks) {
      program_.fill(0);
      index_.clear();
      for (const MidiEvent& event : track) Take(event);
      for (auto& [key, notes] : open_) {
        read_.dropped += static_cast<int64_t>(notes.size());
      }
      open_.clear();
    }
    return std::move(read_);
  }

 private:
  int64_t Scaled(int64_t tick) const {
    const int64_t division = file_.ticks_per_beat;
    return (2 * tick * kTicksPerBeat + division) / (2 * division);
  }

  void Take(const MidiEvent& event) {
    switch (event.kind) {
      case Kind::kNoteOn:
        open_[{event.channel, event.pitch}].push_back(
            {event.tick, event.value});
        break;
      case Kind::kNoteOff:
        EndNotes(event);
        break;
      case Kind::kProgram:
        program_[event.channel] = event.value;
        break;
      case Kind::kTempo:
        TakeTempo(event);
    }
  }

  void EndNotes(const MidiEvent& end) {
    const auto found = open_.find({end.channel, end.pitch});
    if (found == open_.end()) return;
    std::vector<OpenNote>& open = found->second;
    const auto kept = std::partition_point(
        open.begin(), open.end(),
        [&](const OpenNote& n) { return n.tick != end.tick; });
    for (auto note = open.begin(); note != kept; ++note) {
      const int64_t start = Scaled(note->tick);
      NotesOf(end.channel)
          .push_back({start, std::max(Scaled(end.tick), start + 1), end.pitch,
                      note->velocity});
    }
    if (kept != open.begin() && kept != open.end()) {
      open.erase(open.begin(), kept);
    } else {
      read_.dropped += open.end() - kept;
      open_.erase(found);
    }
  }

  std::vector<MidiNote>& NotesOf(int channel) {
    const auto [found, is_new] =
        index_.try_emplace({program_[channel], channel}, read_.notes.size());
    if (is_new) read_.notes.emplace_back();
    return read_.notes[found->second];
  }

  void TakeTempo(const MidiEvent& event) {
    const TempoChange tempo = {Scaled(event.tick),
                               kMicrosecondsPerMinute / event.value};
    if (tempo.start == 0) read_.tempi.clear();
    if (tempo.start == 0 || tempo.bpm != read_.tempi.back().bpm) {
      read_.tempi.push_back(tempo);
    }
  }

  const MidiFile& file_;
  Instruments read_;
  // State of the current track: the program of each channel, the index of each
  // program and channel in read_.notes, and the open notes by channel and
  // pitch.
  std::array<int, 16> program_ = {};
  std::map<std::pair<int, int>, size_t> index_;
  std::map<std::pair<int, int>, std::vector<OpenNote>> open_;
};

}  // namespace

Instruments ReadInstruments(const MidiFile& file) {
  return InstrumentReader(file).Read();
}

}  // namespace txl
