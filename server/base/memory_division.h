#pragma once

// The one budget for memory, divided once at start: plain data that the
// composition root computes and GetServerStatus and the metrics show.

#include <cstdint>

namespace txl {

// Bytes of host memory, each >= 0. The parts' sum is `limit`, unless the flags
// ask for more than there is (then the start fails).
struct MemoryDivision {
  int64_t limit = 0;     // what the process may take: --memory-limit or found
  int64_t weights = 0;   // the model, as it is kept for steps
  int64_t slots = 0;     // segment memory of sessions that have a slot
  int64_t images = 0;    // state images of those that have none
  int64_t ids = 0;       // session records and their token ids
  int64_t records = 0;   // answers of turns with a request_id
  int64_t requests = 0;  // messages half received, calls in flight
  int64_t streams = 0;   // answers being written
  int64_t reserve = 0;  // libraries, stacks, a step's tensors, the heap's waste
};

}  // namespace txl
