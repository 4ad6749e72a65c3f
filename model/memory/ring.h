#pragma once

// Arithmetic of the ring in which a slot keeps a layer's rows: pure functions
// of absolute positions. Capacity C = M + S rows (S spare), the row of absolute
// position t at index t mod C. A step may write up to S rows past the
// committed position without touching a row that the committed state needs, so
// a discarded step changes nothing.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace txl {

struct RingGeometry {
  int64_t mem_len = 0;  // M
  int64_t spare = 0;    // S >= 8
  int64_t window = 0;   // W <= M + 1, keys a query sees, itself included
  bool zero_start = false;

  int64_t capacity() const { return mem_len + spare; }  // C
  // Index of absolute position t >= -M.
  int64_t IndexOf(int64_t t) const {
    const int64_t c = capacity();
    return ((t % c) + c) % c;
  }
  // First position that exists: -M for zero start, else 0.
  int64_t first_position() const { return zero_start ? -mem_len : 0; }
  // Rows that a state before `position` has: of its last positions.
  int64_t RowsBefore(int64_t position) const {
    return std::min(mem_len, position - first_position());
  }
  // Keys of query t: [OldestVisible(t), t].
  int64_t OldestVisible(int64_t t) const {
    const int64_t oldest = t - window + 1;
    return oldest > first_position() ? oldest : first_position();
  }
};

// Distance of each ring index to query t, for a ring whose newest written row
// is `newest` >= t; -1 where the query must not look (rows after it, outside
// its window, before the first position). Size C.
inline std::vector<int64_t> RingDistances(const RingGeometry& ring, int64_t t,
                                          int64_t newest) {
  const int64_t capacity = ring.capacity();
  std::vector<int64_t> distances(capacity, -1);
  const int64_t oldest = ring.OldestVisible(t);
  for (int64_t position = t; position >= oldest; --position) {
    // Rows that a newer one has overwritten are gone.
    if (position <= newest - capacity) break;
    distances[ring.IndexOf(position)] = t - position;
  }
  return distances;
}

}  // namespace txl
