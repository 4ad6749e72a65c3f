#pragma once

// What is counted in a simulated cell, after its warm-up.

#include <array>
#include <cstdint>

#include "client/bench/measure/histogram.h"

namespace txl::fleet {

// Where the state of a session was that a turn began with.
enum class Memory { kSlot, kLocalImage, kSharedImage, kRebuilt };
inline constexpr int kMemories = 4;

struct Figures {
  // Turns in being at both ends of the time that is counted, those that became
  // due and those that ended in it: started + due = ended + left.
  int64_t turns_at_start = 0;
  int64_t turns_due = 0;
  int64_t turns_ended = 0;
  int64_t turns_left = 0;
  int64_t conversations_refused = 0;  // found no session that was not in use

  int64_t tokens = 0;        // sent
  int64_t prompt_rows = 0;   // fed, as asked
  int64_t rebuilt_rows = 0;  // fed because a state was not there
  std::array<int64_t, kMemories> memories{};  // turns by Memory
  bench::Histogram first_token;               // from when a turn was due
  bench::Histogram end_to_end;
  bench::Histogram takeover;    // from a failure to the stream's next token
  int64_t turns_broken = 0;     // by failures
  int64_t failed_attempts = 0;  // of clients that were sent to a lost server

  // Sums over servers, shards and cells of seconds in which each worked, and
  // of all seconds that there were.
  double device_busy_seconds = 0;
  double server_seconds = 0;
  double slot_seconds = 0;  // slots of turns
  double shard_busy_seconds = 0;
  double shard_seconds = 0;
  int64_t commands = 0;
  double store_bytes = 0;
  int64_t image_reads = 0;
  int64_t image_writes = 0;
  double link_busy_seconds = 0;
  double link_seconds = 0;
  double seconds = 0;  // of a cell, the same in all
  int32_t cells = 0;

  void Merge(const Figures& other);
};

}  // namespace txl::fleet
