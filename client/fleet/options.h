#pragma once

// What a simulated fleet is made of, what is asked of it and what it loses.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "client/bench/plan/distribution.h"
#include "client/fleet/company.h"
#include "client/fleet/store_shard.h"

namespace txl::fleet {

// Servers that stop at once, as SIGKILL has it, in every simulated cell.
struct Failure {
  double at_seconds = 0;   // from the start, the warm-up included
  int32_t servers = 0;     // of a cell
  double for_seconds = 0;  // then they are back, empty
  // Their machines or network go, too: nobody resets the connections, so that
  // clients wait for stall_seconds.
  bool silent = false;
};

struct ServerCosts {
  DeviceCosts device;
  int32_t slots = 1;
  // State images in a server's memory or on its own disk, the ones used last;
  // gone with the server.
  int64_t local_images = 0;
  double local_read_seconds = 0;
  // Rows that a state without an image is rebuilt from, at most.
  double rebuild_rows = 1;
};

// State images where every server of a cell reads them.
struct SharedImages {
  bool on = false;
  double bytes = 0;  // of one
  double read_seconds = 0;
  double bytes_per_second = 1;  // of all reads and writes of a cell
  // An image is written when its session leaves a slot, and at the end of a
  // turn when the last one is so many tokens old; 0: only then.
  int64_t snapshot_tokens = 0;
};

struct ShardOptions {
  int32_t shards = 1;  // of a cell
  StoreCosts costs;
  double command_bytes = 0;
  double token_bytes = 0;
  // A stream appends when so many tokens or seconds have come together.
  int64_t append_tokens = 32;
  double append_seconds = 1;
  // A server that is up asks each shard so often which sessions have expired,
  // and keeps a running turn that has told nothing for so long; 0: never.
  double upkeep_seconds = 1;
};

// Conversations begin independently of each other (Poisson); each takes a
// session that no other one has.
struct TurnMix {
  explicit TurnMix()
      : turns(bench::Distribution::Fixed(1)),
        think_seconds(bench::Distribution::Fixed(0)),
        prompt_tokens(bench::Distribution::Fixed(1)),
        answer_tokens(bench::Distribution::Fixed(1)),
        session_tokens(bench::Distribution::Fixed(0)) {}

  double conversations_per_second = 1;  // of a cell
  bench::Distribution turns;            // of a conversation
  bench::Distribution think_seconds;
  bench::Distribution prompt_tokens;
  bench::Distribution answer_tokens;
  bench::Distribution session_tokens;  // before its first turn here
  int64_t sessions = 1;                // of a cell
  double zipf_exponent = 0;            // of which session is next
};

struct Recovery {
  double detect_seconds = 0.5;  // until the proxy knows that a server is gone
  double stall_seconds = 10;    // after which a client gives a stream up
  double first_retry_seconds = 0.1;  // twice as long each time
  double max_retry_seconds = 5;
  std::vector<Failure> failures;
};

struct CellOptions {
  int32_t servers = 1;
  ServerCosts server;
  SharedImages images;
  ShardOptions store;
  TurnMix mix;
  Recovery recovery;
  // Sessions that have had a conversation before the start, in its order.
  int64_t warm_conversations = 0;
  double warmup_seconds = 0;  // not counted
  double seconds = 1;         // counted
  uint64_t seed = 1;
};

// Errors: InvalidArgument for more failing servers than a cell has.
absl::Status CheckCell(const CellOptions& options);

}  // namespace txl::fleet
