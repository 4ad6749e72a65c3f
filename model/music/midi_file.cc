#include "model/music/midi_file.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

using Kind = MidiEvent::Kind;

constexpr absl::string_view kWhat = "the MIDI file ";

absl::Status BadMidi(absl::string_view what) {
  return Bad(absl::StrCat(kWhat, what));
}

// Reads big-endian numbers from a part of the file.
class MidiBytes {
 public:
  MidiBytes(absl::string_view bytes, size_t begin, size_t end)
      : bytes_(bytes), at_(begin), end_(end) {}

  size_t at() const { return at_; }
  size_t left() const { return end_ - at_; }

  // The byte at the reader's place; it stays there.
  absl::StatusOr<uint8_t> Peek() const {
    if (left() == 0) return CutOff();
    return static_cast<uint8_t>(bytes_[at_]);
  }

  absl::StatusOr<uint32_t> Number(size_t length) {
    if (left() < length) return CutOff();
    uint32_t value = 0;
    for (; length > 0; --length) {
      value = value << 8 | static_cast<uint8_t>(bytes_[at_++]);
    }
    return value;
  }

  // 7 bits a byte, the last byte below 0x80; 4 bytes at most.
  absl::StatusOr<uint32_t> Variable() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      TXL_ASSIGN_OR_RETURN(const uint32_t byte, Number(1));
      value = value << 7 | (byte & 0x7f);
      if (byte < 0x80) return value;
    }
    return BadMidi(
        absl::StrCat("has a number of more than 4 bytes before byte ", at_));
  }

  absl::StatusOr<uint8_t> Data() {
    TXL_ASSIGN_OR_RETURN(const uint32_t byte, Number(1));
    if (byte < 0x80) return static_cast<uint8_t>(byte);
    return BadMidi(absl::StrFormat(
        "has 0x%02X at byte %d, where data should be", byte, at_ - 1));
  }

  absl::StatusOr<MidiBytes> Part(size_t length) {
    if (left() < length) return CutOff();
    at_ += length;
    return MidiBytes(bytes_, at_ - length, at_);
  }

 private:
  absl::Status CutOff() const {
    return BadMidi(end_ == bytes_.size()
                       ? absl::StrCat("is cut off at byte ", end_)
                       : absl::StrCat("has a track that ends within an event, "
                                      "at byte ",
                                      end_));
  }

  absl::string_view bytes_;
  size_t at_, end_;
};

constexpr uint8_t kSysEx = 0xf0, kSysExEnd = 0xf7, kMeta = 0xff;
constexpr uint32_t kEndOfTrack = 0x2f, kSetTempo = 0x51;

// The events of one track.
class TrackReader {
 public:
  explicit TrackReader(MidiBytes bytes) : in_(bytes) {}

  absl::StatusOr<std::vector<MidiEvent>> Read() {
    while (!ended_ && in_.left() > 0) {
      TXL_ASSIGN_OR_RETURN(const uint32_t delta, in_.Variable());
      tick_ += delta;
      TXL_RETURN_IF_ERROR(ReadEvent());
    }
    return std::move(events_);
  }

  int64_t last_tick() const { return tick_; }

 private:
  absl::Status ReadEvent() {
    TXL_ASSIGN_OR_RETURN(const uint8_t first, in_.Peek());
    if (first < 0x80 && status_ == 0) {
      return BadMidi(
          absl::StrFormat("has 0x%02X at byte %d, where an event "
                          "should begin",
                          first, in_.at()));
    }
    if (first == kMeta) return ReadMeta();
    if (first == kSysEx || first == kSysExEnd) return SkipSysEx();
    if (first > kSysEx) {
      return BadMidi(
          absl::StrFormat("has 0x%02X at byte %d, which no event of "
                          "a file begins with",
                          first, in_.at()));
    }
    if (first >= 0x80) {
      status_ = first;
      TXL_RETURN_IF_ERROR(in_.Number(1).status());
    }
    return ReadChannelEvent();
  }

  absl::Status ReadChannelEvent() {
    const int type = status_ >> 4;
    TXL_ASSIGN_OR_RETURN(const uint8_t first, in_.Data());
    uint8_t second = 0;
    if (type != 0xc && type != 0xd) {
      TXL_ASSIGN_OR_RETURN(second, in_.Data());
    }
    if (type == 0x8 || (type == 0x9 && second == 0)) {
      Add(Kind::kNoteOff, first, 0);
    } else if (type == 0x9) {
      Add(Kind::kNoteOn, first, second);
    } else if (type == 0xc) {
      Add(Kind::kProgram, 0, first);
    }
    return absl::OkStatus();
  }

  absl::Status ReadMeta() {
    TXL_ASSIGN_OR_RETURN(const uint32_t type, in_.Number(2));
    TXL_ASSIGN_OR_RETURN(const uint32_t length, in_.Variable());
    TXL_ASSIGN_OR_RETURN(MidiBytes content, in_.Part(length));
    ended_ = (type & 0xff) == kEndOfTrack;
    if ((type & 0xff) == kSetTempo && length == 3) {
      TXL_ASSIGN_OR_RETURN(const uint32_t tempo, content.Number(3));
      if (tempo == 0) return BadMidi("has a tempo of no time for a beat");
      Add(Kind::kTempo, 0, static_cast<int32_t>(tempo));
    }
    return absl::OkStatus();
  }

  absl::Status SkipSysEx() {
    status_ = 0;
    TXL_RETURN_IF_ERROR(in_.Number(1).status());
    TXL_ASSIGN_OR_RETURN(const uint32_t length, in_.Variable());
    return in_.Part(length).status();
  }

  void Add(Kind kind, uint8_t pitch, int32_t value) {
    events_.push_back(
        {tick_, value, kind, static_cast<uint8_t>(status_ & 0xf), pitch});
  }

  MidiBytes in_;
  std::vector<MidiEvent> events_;
  int64_t tick_ = 0;
  uint8_t status_ = 0;  // of the channel events; 0: none yet
  bool ended_ = false;
};

struct MidiHeader {
  uint32_t tracks = 0;
  int64_t ticks_per_beat = 0;
};

absl::StatusOr<MidiHeader> ReadHeader(MidiBytes& in) {
  TXL_ASSIGN_OR_RETURN(const uint32_t length, in.Number(4));
  if (length < 6) return BadMidi("has a header of less than 6 bytes");
  TXL_ASSIGN_OR_RETURN(MidiBytes header, in.Part(length));
  TXL_ASSIGN_OR_RETURN(const uint32_t format, header.Number(2));
  TXL_ASSIGN_OR_RETURN(const uint32_t tracks, header.Number(2));
  TXL_ASSIGN_OR_RETURN(const uint32_t division, header.Number(2));
  if (format > 1) {
    return BadMidi(
        absl::StrCat("has format ", format, "; formats 0 and 1 can be read"));
  }
  if (division >= 0x8000) {
    return BadMidi("counts time in SMPTE frames, not in beats");
  }
  if (division == 0) return BadMidi("has no ticks per beat");
  return MidiHeader{tracks, division};
}

}  // namespace

absl::StatusOr<MidiFile> ParseMidi(absl::string_view bytes) {
  constexpr absl::string_view kMagic = "MThd", kTrack = "MTrk";
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    return Bad("the file is not a MIDI file: it does not begin with MThd");
  }
  MidiBytes in(bytes, kMagic.size(), bytes.size());
  TXL_ASSIGN_OR_RETURN(const MidiHeader header, ReadHeader(in));
  MidiFile file;
  file.ticks_per_beat = header.ticks_per_beat;
  while (file.tracks.size() < header.tracks) {
    const absl::string_view name = bytes.substr(in.at(), kTrack.size());
    TXL_RETURN_IF_ERROR(in.Number(4).status());
    TXL_ASSIGN_OR_RETURN(const uint32_t length, in.Number(4));
    TXL_ASSIGN_OR_RETURN(const MidiBytes chunk, in.Part(length));
    if (name != kTrack) continue;
    TrackReader track(chunk);
    TXL_ASSIGN_OR_RETURN(std::vector<MidiEvent> events, track.Read());
    file.tracks.push_back(std::move(events));
    file.last_tick = std::max(file.last_tick, track.last_tick());
  }
  if (file.last_tick / file.ticks_per_beat >= kMostMidiBeats) {
    return BadMidi(absl::StrCat("is longer than ", kMostMidiBeats, " beats"));
  }
  return file;
}

}  // namespace txl
