#pragma once

// A closed loop of streams against a server: each starts its next turn when its
// last one ended, so latency is not a function of an offered load.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/channel.h"
#include "client/client.h"

namespace txl::bench {

struct LoadOptions {
  ChannelOptions channel;
  int32_t streams = 8;         // turns at a time
  int32_t connections = 0;     // 0: one for each 50 streams
  int32_t prompt_tokens = 32;  // of each turn; random ids
  int32_t max_tokens = 128;    // of each turn; end tokens do not end it
  int64_t requests = 0;        // turns in all; 0: as `seconds` says
  // Turns start for that long; what runs then ends. 0 and no `requests`: 10.
  double seconds = 0;
  double temperature = 1;
  uint64_t seed = 0;  // of prompts and draws: turn i is the same in every run
};

// Times in seconds on the monotonic clock, from the call's start.
struct TurnResult {
  std::string status;   // "OK", "RESOURCE_EXHAUSTED (QUEUE_FULL)", ...
  std::string problem;  // what was wrong with the stream; empty: nothing
  int64_t tokens = 0;
  double first_token = 0;  // 0 without tokens
  double total = 0;
  // Gaps between tokens; k tokens in one message count k times gap/k.
  std::vector<double> gaps;
};

struct LoadResult {
  LoadOptions options;  // with `connections` and the end filled in
  std::string model;    // name and fingerprint
  std::string fingerprint;
  double seconds = 0;  // from the first start to the last end
  std::vector<TurnResult> turns;
};

// Connections for so many streams: a server limits the streams of one.
int32_t DefaultConnections(int32_t streams);

// The request of turn `index`: a function of seed, index and vocabulary size.
v1::GenerateRequest MakeTurn(const LoadOptions& options, int64_t vocabulary,
                             int64_t index);

// Runs it; blocks. After canceller->Cancel() running turns end as CANCELLED and
// no turn starts. Errors: those of OpenChannel and of GetModel; a turn's error
// is a result.
absl::StatusOr<LoadResult> RunLoad(LoadOptions options, Canceller* canceller);

}  // namespace txl::bench
