#include "model/base/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace txl {
namespace {

using std::filesystem::path;

constexpr int64_t kUsualSlotBytes = int64_t{1} << 30;
constexpr int64_t kUsualMemoryLimit = int64_t{4} << 30;

// Files of a version of control groups (Linux, admin-guide/cgroup-v2 and
// cgroup-v1/memory).
struct GroupVersion {
  const char* folder;  // below /sys/fs/cgroup
  const char* limit;
  const char* used;
  absl::string_view reclaimable;  // a line of memory.stat
};
constexpr GroupVersion kVersion1 = {"memory", "memory.limit_in_bytes",
                                    "memory.usage_in_bytes",
                                    "total_inactive_file"};
constexpr GroupVersion kVersion2 = {"", "memory.max", "memory.current",
                                    "inactive_file"};

// Empty where there is no such file. The sizes of these files say nothing.
std::string KernelText(const path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// Nothing where there is no such file or it holds no number ("max").
std::optional<int64_t> ReadNumber(const path& file) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(KernelText(file)),
                        &number)) {
    return std::nullopt;
  }
  return number;
}

// The number behind `name` in lines "name number" or "name: number unit".
std::optional<int64_t> FindNumber(absl::string_view text,
                                  absl::string_view name) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipWhitespace());
    int64_t number = 0;
    if (words.size() >= 2 && absl::StripSuffix(words[0], ":") == name &&
        absl::SimpleAtoi(words[1], &number)) {
      return number;
    }
  }
  return std::nullopt;
}

std::optional<int64_t> Least(std::optional<int64_t> a,
                             std::optional<int64_t> b) {
  if (!a.has_value() || !b.has_value()) return a.has_value() ? a : b;
  return std::min(*a, *b);
}

// What one group has left.
std::optional<int64_t> LeftOfGroup(const path& group,
                                   const GroupVersion& version) {
  const std::optional<int64_t> limit = ReadNumber(group / version.limit);
  const std::optional<int64_t> used = ReadNumber(group / version.used);
  if (!limit.has_value() || !used.has_value()) return std::nullopt;
  const int64_t reclaimable =
      FindNumber(KernelText(group / "memory.stat"), version.reclaimable)
          .value_or(0);
  const int64_t kept = std::max<int64_t>(0, *used - reclaimable);
  return std::max<int64_t>(0, *limit - kept);
}

// The least that the group `name` ("/a/b") and those above it have left. Inside
// a container the name can be the host's, whose folders are not there, while
// the outermost folder is the container's own.
std::optional<int64_t> LeftOfGroups(const path& root, absl::string_view name,
                                    const GroupVersion& version) {
  path group = root / "sys/fs/cgroup" / version.folder;
  std::optional<int64_t> left = LeftOfGroup(group, version);
  for (const absl::string_view part :
       absl::StrSplit(name, '/', absl::SkipEmpty())) {
    group /= std::string(part);
    left = Least(left, LeftOfGroup(group, version));
  }
  return left;
}

// Lines "0::/group" of version 2 and "number:controllers:/group" of version 1.
std::optional<int64_t> LeftOfAllGroups(const path& root) {
  std::optional<int64_t> left;
  const std::string groups = KernelText(root / "proc/self/cgroup");
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (fields[1].empty()) {
      left = Least(left, LeftOfGroups(root, fields[2], kVersion2));
    } else if (fields[1] == "memory") {
      left = Least(left, LeftOfGroups(root, fields[2], kVersion1));
    }
  }
  return left;
}

}  // namespace

std::optional<int64_t> AvailableHostBytes(const std::string& root) {
  std::optional<int64_t> available =
      FindNumber(KernelText(path(root) / "proc/meminfo"), "MemAvailable");
  if (available.has_value()) *available *= 1024;  // "kB"
  return Least(available, LeftOfAllGroups(root));
}

int64_t UsualMemoryLimit(std::optional<int64_t> available, int64_t resident) {
  if (!available.has_value()) return kUsualMemoryLimit;
  const int64_t all = *available + resident;
  return all - all / 16;
}

int64_t UsualSlotBytes(std::optional<int64_t> available, int64_t weight_bytes) {
  if (!available.has_value()) return kUsualSlotBytes;
  return std::max<int64_t>(0, (*available - weight_bytes) / 2);
}

void* MapPages(size_t bytes, bool huge) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  if (huge) madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: it may be refused
#endif
  return memory;
}

void UnmapPages(void* memory, size_t bytes) noexcept { munmap(memory, bytes); }

}  // namespace txl
