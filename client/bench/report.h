#pragma once

// The figures of a load test.

#include <map>
#include <string>

#include "client/bench/latency.h"
#include "client/bench/load.h"

namespace txl::bench {

struct Report {
  LoadOptions options;
  std::string model;
  std::string fingerprint;
  double seconds = 0;
  int64_t requests = 0;
  int64_t tokens = 0;  // received, also of turns that failed later
  double tokens_per_second = 0;
  double requests_per_second = 0;           // of those that ended OK
  std::map<std::string, int64_t> statuses;  // turns by status
  std::map<std::string, int64_t>
      problems;                        // malformed streams by what is wrong
  LatencySummary time_to_first_token;  // from send to the first token message
  LatencySummary inter_token;          // gap between tokens
  LatencySummary end_to_end;           // from send to the end, OK turns
};

Report MakeReport(const LoadResult& result);

// A table for people.
std::string ToText(const Report& report);
// One line of JSON; times in seconds.
std::string ToJsonLine(const Report& report);

}  // namespace txl::bench
