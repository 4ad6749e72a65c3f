#pragma once

// A run against a server: connects, drives, and counts what it cost.

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/bench/run/driver.h"
#include "client/bench/run/run_options.h"
#include "client/bench/run/server_counters.h"
#include "client/canceller.h"
#include "client/channel.h"

namespace txl::bench {

struct LoadOptions {
  ChannelOptions channel;
  // 0: one for each 50 turns that run, in an open loop as they come.
  int32_t connections = 0;
  int32_t threads = 0;         // 0: one for each 8 connections of the start
  double timeout_seconds = 0;  // of each turn; 0: none
  RunOptions run;
};

// What the run cost on this side.
struct TesterUsage {
  double cpu_seconds = 0;
  int64_t context_switches = 0;
  int32_t threads = 0;
  int32_t connections = 0;
};

struct LoadResult {
  LoadOptions options;  // with the end filled in
  std::string model;    // name and fingerprint
  std::string fingerprint;
  std::string server_version;
  absl::Time start;     // of the run
  std::string host;     // that it ran on: the tester's
  DriverResult result;  // of all threads
  TesterUsage usage;
  ServerCheck server;
};

// Called about once a second while a run goes.
using OnProgress = std::function<void(double seconds, const Progress&)>;

// Connections for so many streams: a server limits the streams of one.
int32_t DefaultConnections(int32_t streams);

// Runs it; blocks. After canceller->Cancel() running turns end as CANCELLED and
// no turn starts. `on_progress` may be empty. Errors: those of OpenChannel and
// of GetModel, InvalidArgument for turns that the server's limits forbid; a
// turn's error is a result.
absl::StatusOr<LoadResult> RunLoad(LoadOptions options, Canceller* canceller,
                                   const OnProgress& on_progress = {});

}  // namespace txl::bench
