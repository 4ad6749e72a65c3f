#pragma once

// Musical time as a second input of a model (musicautobot's encode_position,
// position_enc in its transform.py): the durations of the waits between notes
// add up, and every token's embedding gets a row for the place in its bar and
// one for the bar. The count is a function of the ids before the token, so that
// it is kept nowhere: who feeds a token counts the ids before it.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "model/base/anywhere.h"

namespace txl {

// The member `beat_positions` of config.json, and its fields.
struct BeatPositions {
  int32_t separator = 0;  // the id behind it is a duration that is waited
  int32_t duration0 = 0;  // this id waits 0 ticks, the id k behind it k ticks
  int32_t mask = 0;       // an id that stands for a duration: 0 ticks
  int32_t restart = 0;    // begins a piece: counts from 0, itself included
  int32_t bar_ticks = 1;  // rows of the table emb.beat
  int32_t bars = 1;       // of emb.bar; the bar behind the last is bar 0

  // Ticks behind which all rows come again.
  int32_t period() const { return bar_ticks * bars; }
  friend bool operator==(const BeatPositions&, const BeatPositions&) = default;
};

// Ticks of a row that feeds `token`, where BeatCounter says `ticks` before it.
TXL_ANYWHERE int32_t TicksOf(int32_t token, const BeatPositions& beats,
                             int32_t ticks) {
  return token == beats.restart ? 0 : ticks;
}
// The rows of the tables for them, ticks >= 0.
TXL_ANYWHERE int32_t BeatRow(const BeatPositions& beats, int32_t ticks) {
  return ticks % beats.bar_ticks;
}
TXL_ANYWHERE int32_t BarRow(const BeatPositions& beats, int32_t ticks) {
  return ticks / beats.bar_ticks % beats.bars;
}

// Counts the ids of a piece, from its beginning. An id behind a separator that
// is not a duration counts as the original counts it: by its distance from
// duration0, below zero too.
class BeatCounter {
 public:
  explicit BeatCounter(const BeatPositions& positions)
      : positions_(positions) {}

  const BeatPositions& positions() const { return positions_; }
  // Ticks of the next id, unless that id restarts the count; in [0, period).
  int32_t ticks() const { return ticks_; }
  void Add(int32_t id) {
    ticks_ = TicksOf(id, positions_, ticks_);
    if (waits_ && id != positions_.restart && id != positions_.mask) {
      const int32_t period = positions_.period();
      const int32_t moved = (ticks_ + id - positions_.duration0) % period;
      ticks_ = moved < 0 ? moved + period : moved;
    }
    waits_ = id == positions_.separator;
  }
  // Adds all; returns ticks() before each.
  std::vector<int32_t> AddAll(absl::Span<const int32_t> ids) {
    std::vector<int32_t> ticks;
    ticks.reserve(ids.size());
    for (const int32_t id : ids) {
      ticks.push_back(ticks_);
      Add(id);
    }
    return ticks;
  }

 private:
  BeatPositions positions_;
  int32_t ticks_ = 0;
  bool waits_ = false;  // behind a separator
};

// BeatCounter::ticks before each id of a piece; zeros where a model counts
// none.
inline std::vector<int32_t> TicksBefore(
    const std::optional<BeatPositions>& beats, absl::Span<const int32_t> ids) {
  if (!beats.has_value()) return std::vector<int32_t>(ids.size());
  return BeatCounter(*beats).AddAll(ids);
}

}  // namespace txl
