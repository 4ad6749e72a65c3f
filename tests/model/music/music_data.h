#pragma once

// MIDI files for tests, and vocabularies of music.

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "model/text/symbol_vocabulary.h"

namespace txl {

inline std::string MusicFile(const std::string& name) {
  std::ifstream in(
      std::string(std::getenv("TXL_TEST_DATA")) + "/model/music/data/" + name,
      std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

// The vocabulary of events; as in a model directory, a space is %20.
inline std::unique_ptr<Vocabulary> EventVocabulary(
    std::vector<std::string> events) {
  for (std::string& event : events) {
    const size_t space = event.find(' ');
    if (space != std::string::npos) event.replace(space, 1, "%20");
  }
  return std::make_unique<SymbolVocabulary>("events", std::move(events),
                                            SymbolRules());
}

// That of data/FAMILY.txt, but for the events in `without`.
inline std::unique_ptr<Vocabulary> FamilyVocabulary(
    const std::string& family, const std::vector<std::string>& without = {}) {
  std::vector<std::string> events;
  for (absl::string_view event :
       absl::StrSplit(MusicFile(family + ".txt"), '\n', absl::SkipEmpty())) {
    bool is_out = false;
    for (const std::string& each : without) is_out = is_out || each == event;
    if (!is_out) events.emplace_back(event);
  }
  return EventVocabulary(std::move(events));
}

inline std::string BigEndian(uint32_t value, int length) {
  std::string bytes;
  for (int i = length - 1; i >= 0; --i) {
    bytes.push_back(static_cast<char>(value >> (8 * i)));
  }
  return bytes;
}

inline std::string Chunk(const std::string& name, const std::string& content) {
  return name + BigEndian(static_cast<uint32_t>(content.size()), 4) + content;
}

inline std::string MidiHeader(uint32_t format, uint32_t tracks,
                              uint32_t division) {
  return Chunk("MThd", BigEndian(format, 2) + BigEndian(tracks, 2) +
                           BigEndian(division, 2));
}

// A track event by event, at ticks since its beginning that never decrease.
class TrackBytes {
 public:
  TrackBytes& Raw(uint32_t tick, std::initializer_list<int> bytes) {
    uint32_t delta = tick - std::exchange(now_, tick);
    std::string number(1, static_cast<char>(delta & 0x7f));
    while ((delta >>= 7) > 0) {
      number.insert(number.begin(), static_cast<char>(0x80 | (delta & 0x7f)));
    }
    bytes_ += number;
    for (const int byte : bytes) bytes_.push_back(static_cast<char>(byte));
    return *this;
  }
  TrackBytes& On(uint32_t tick, int pitch, int velocity = 64, int channel = 0) {
    return Raw(tick, {0x90 | channel, pitch, velocity});
  }
  TrackBytes& Off(uint32_t tick, int pitch, int channel = 0) {
    return Raw(tick, {0x80 | channel, pitch, 0});
  }
  TrackBytes& Tempo(uint32_t tick, int bpm) {
    const int us = 60'000'000 / bpm;
    return Raw(tick,
               {0xff, 0x51, 3, us >> 16 & 0xff, us >> 8 & 0xff, us & 0xff});
  }
  std::string Chunk() const {
    return txl::Chunk("MTrk", bytes_ + std::string("\0\xff\x2f\0", 4));
  }

 private:
  std::string bytes_;
  uint32_t now_ = 0;
};

inline std::string MidiOf(std::initializer_list<TrackBytes> tracks,
                          uint32_t division = 480) {
  std::string bytes =
      MidiHeader(1, static_cast<uint32_t>(tracks.size()), division);
  for (const TrackBytes& track : tracks) bytes += track.Chunk();
  return bytes;
}

}  // namespace txl
