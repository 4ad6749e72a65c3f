#include "tests/bench/process_facts.h"

#include <sys/resource.h>

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace txl {
namespace {

// What stands after the colon of the first line that begins with `name`.
std::string Field(const char* path, const char* name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !absl::StartsWith(line, name)) continue;
    return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return "";
}

}  // namespace

double ProcessorSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::string CpuName() { return Field("/proc/cpuinfo", "model name"); }

}  // namespace txl
