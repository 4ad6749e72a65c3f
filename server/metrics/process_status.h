#pragma once

// What the operating system says about this process.

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace txl {

// What /proc/PID/stat says; times in clock ticks.
struct ProcStat {
  int64_t cpu_ticks = 0;  // user and system
  int64_t threads = 0;
  int64_t start_ticks = 0;  // after the start of the machine
  int64_t virtual_bytes = 0;
  int64_t resident_pages = 0;
};
// Absent: not such a line. The program's name in it may hold anything.
std::optional<ProcStat> ParseProcStat(absl::string_view line);
// "btime" of /proc/stat: start of the machine, seconds since 1970.
std::optional<int64_t> ParseBootTime(absl::string_view text);

// What cannot be read is 0.
struct ProcessStatus {
  double cpu_seconds = 0;
  double start_time_seconds = 0;  // since 1970
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  int64_t threads = 0;
  int64_t open_fds = 0;
  int64_t max_fds = 0;
};
ProcessStatus ReadProcessStatus();

}  // namespace txl
