#pragma once

// The figures of a run.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/bench/measure/histogram.h"
#include "client/bench/plan/workload.h"
#include "client/bench/result/goodput.h"
#include "client/bench/run/load.h"

namespace txl::bench {

// A part of the run, for pictures.
struct Interval {
  double start = 0;  // seconds since the run's start
  double seconds = 0;
  int64_t tokens = 0;   // received
  int64_t due = 0;      // turns that were due
  int64_t ended = 0;    // turns that ended well
  int64_t failed = 0;   // turns that were refused, failed or not sent
  int64_t running = 0;  // turns due and not over at its end
};

// Measured turns are those that were due after the warm-up. Times of a turn
// count from when it was due, unless said otherwise.
struct Report {
  LoadOptions options;
  std::string model;
  std::string fingerprint;
  std::string server_version;
  absl::Time start;
  std::string host;
  Limits limits;

  // What rates are over: from the end of the warm-up until no turn starts any
  // more (runs with `seconds`) or the last turn's end.
  double seconds = 0;
  double offered_per_second = 0;  // measured turns due in the window
  double tokens_per_second = 0;
  double requests_per_second = 0;  // that ended OK

  int64_t requests = 0;  // all turns
  int64_t measured = 0;
  int64_t tokens = 0;  // received by all turns, also those that failed later
  std::map<std::string, int64_t> statuses;  // all turns
  // The first error of each status other than OK.
  std::map<std::string, std::string> errors;
  std::map<std::string, int64_t> outcomes;  // measured turns
  std::map<std::string, int64_t> problems;  // malformed streams of all turns

  Histogram first_token;            // measured ordinary turns with a token
  Histogram first_token_from_send;  // the same, from the call's start
  Histogram inter_token;            // between their tokens
  Histogram per_token;              // mean gap of each turn with two tokens
  Histogram end_to_end;             // measured ordinary turns that ended OK
  Histogram dispatch_lag;           // from due to sent: the tester's own

  std::optional<Goodput> goodput;  // with limits
  std::optional<Backlog> backlog;  // of an open loop
  std::vector<Stall> stalls;       // hits: of the measured turns
  TesterUsage usage;
  ServerCheck server;
  std::vector<Interval> series;

  // The tester itself was late: its figures are not the server's. Dispatch lag
  // p99 above 5 ms and above 5 % of the median time to first token.
  bool client_bound() const;
};

Report MakeReport(const LoadResult& result, const Limits& limits);

}  // namespace txl::bench
