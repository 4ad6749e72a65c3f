#include "server/metrics/server_status.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/base/text_file.h"

namespace txl {
namespace {

// Indices of fields behind the program's name; proc(5) counts from 3 there.
constexpr size_t kUserTicks = 14 - 3;
constexpr size_t kSystemTicks = 15 - 3;
constexpr size_t kThreads = 20 - 3;
constexpr size_t kStartTicks = 22 - 3;
constexpr size_t kVirtualBytes = 23 - 3;
constexpr size_t kResidentPages = 24 - 3;

int64_t CountOpenFds() {
  std::error_code error;
  int64_t count = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end;
       !error && it != end; it.increment(error)) {
    ++count;
  }
  // One of them is this reader's own.
  return count > 0 ? count - 1 : 0;
}

int64_t MaxFds() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace

std::optional<ProcStat> ParseProcStat(absl::string_view line) {
  const size_t name_end = line.rfind(") ");
  if (name_end == absl::string_view::npos) return std::nullopt;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(line.substr(name_end + 2), ' ');
  if (fields.size() <= kResidentPages) return std::nullopt;
  ProcStat stat;
  int64_t system_ticks = 0;
  if (!absl::SimpleAtoi(fields[kUserTicks], &stat.cpu_ticks) ||
      !absl::SimpleAtoi(fields[kSystemTicks], &system_ticks) ||
      !absl::SimpleAtoi(fields[kThreads], &stat.threads) ||
      !absl::SimpleAtoi(fields[kStartTicks], &stat.start_ticks) ||
      !absl::SimpleAtoi(fields[kVirtualBytes], &stat.virtual_bytes) ||
      !absl::SimpleAtoi(fields[kResidentPages], &stat.resident_pages)) {
    return std::nullopt;
  }
  stat.cpu_ticks += system_ticks;
  return stat;
}

std::optional<int64_t> ParseBootTime(absl::string_view text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    int64_t seconds = 0;
    if (absl::ConsumePrefix(&line, "btime ") &&
        absl::SimpleAtoi(line, &seconds)) {
      return seconds;
    }
  }
  return std::nullopt;
}

ProcessStatus ReadProcessStatus() {
  ProcessStatus status = {.open_fds = CountOpenFds(), .max_fds = MaxFds()};
  const auto stat = ParseProcStat(ReadTextFile("/proc/self/stat"));
  if (!stat.has_value()) return status;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  status.cpu_seconds = static_cast<double>(stat->cpu_ticks) / ticks;
  status.threads = stat->threads;
  status.virtual_bytes = stat->virtual_bytes;
  status.resident_bytes = stat->resident_pages * sysconf(_SC_PAGESIZE);
  if (const auto boot = ParseBootTime(ReadTextFile("/proc/stat"))) {
    status.start_time_seconds = static_cast<double>(*boot) +
                                static_cast<double>(stat->start_ticks) / ticks;
  }
  return status;
}

}  // namespace txl
