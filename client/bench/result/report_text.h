#pragma once

// Results for people.

#include <string>

#include "client/bench/result/report.h"
#include "client/bench/result/sweep.h"

namespace txl::bench {

// A few lines and a table.
std::string ToText(const Report& report);
// A line for each run, then the main one.
std::string ToText(const Sweep& sweep);
// One line about a run that goes; `last`: as at the line before.
struct ProgressSoFar {
  double seconds = 0;
  int64_t sent = 0;
  int64_t ended = 0;
  int64_t failed = 0;
  int64_t tokens = 0;
};
ProgressSoFar SoFar(double seconds, const Progress& progress);
std::string ProgressLine(const ProgressSoFar& last, const ProgressSoFar& now);

}  // namespace txl::bench
