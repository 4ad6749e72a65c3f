#include "server/base/memory_guard.h"

#include <malloc.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "server/base/log.h"
#include "server/base/text_file.h"

namespace txl {
namespace {

constexpr int kSamplesBetweenTrims = 10;

MemoryGuardOptions WithTrim(MemoryGuardOptions options) {
  if (options.trim == nullptr) options.trim = [] { malloc_trim(0); };
  return options;
}

}  // namespace

int64_t ResidentBytes() {
  const std::string text = ReadTextFile("/proc/self/statm");
  const std::vector<absl::string_view> fields = absl::StrSplit(text, ' ');
  int64_t pages = 0;
  if (fields.size() < 2 || !absl::SimpleAtoi(fields[1], &pages)) return 0;
  return pages * sysconf(_SC_PAGESIZE);
}

bool ShouldShed(bool shedding, int64_t resident, int64_t limit) {
  const int64_t percent = limit / 100;
  return resident > (shedding ? 93 : 95) * percent;
}

MemoryGuard::MemoryGuard(MemoryGuardOptions options)
    : options_(WithTrim(std::move(options))),
      resident_(options_.resident()),
      thread_(options_.interval, [this] { Sample(); }) {}

void MemoryGuard::Sample() {
  const bool shedding = Shedding();
  int64_t resident = options_.resident();
  if (ShouldShed(shedding, resident, options_.limit) &&
      (!shedding || ++samples_since_trim_ >= kSamplesBetweenTrims)) {
    samples_since_trim_ = 0;
    options_.trim();
    resident = options_.resident();
  }
  const bool shed = ShouldShed(shedding, resident, options_.limit);
  resident_.store(resident, std::memory_order_relaxed);
  shedding_.store(shed, std::memory_order_relaxed);
  if (shed == shedding) return;
  Log(shed ? LogSeverity::kWarning : LogSeverity::kInfo, "shed",
      {{"shedding", shed}, {"resident", resident}, {"limit", options_.limit}});
}

}  // namespace txl
