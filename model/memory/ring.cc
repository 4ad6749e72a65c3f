#include "model/memory/ring.h"

namespace txl {

std::vector<int64_t> RingDistances(const RingGeometry& ring, int64_t t,
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
