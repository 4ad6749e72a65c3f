#include "tests/client/process_memory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace txl::testing {

int64_t OwnBytesIn(const std::string& status) {
  std::istringstream lines(status);
  int64_t kib = 0;
  int found = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, unit;
    int64_t value = 0;
    words >> name;
    if (name != "RssAnon:" && name != "VmSwap:") continue;
    if (!(words >> value >> unit) || unit != "kB") return -1;
    kib += value;
    ++found;
  }
  return found == 2 ? kib * 1024 : -1;
}

int64_t OwnBytes(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  std::ostringstream text;
  text << file.rdbuf();
  const int64_t bytes = OwnBytesIn(text.str());
  EXPECT_GE(bytes, 0) << "process " << pid << ": " << text.str();
  return bytes;
}

}  // namespace txl::testing
