#include "server/base/memory_guard.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
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

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

// Resident before any session: LibTorch's and gRPC's code, tables and threads.
// Measured: 157 MiB, weights and one slot taken off.
constexpr int64_t kProgramBytes = 160 * kMiB;
// The limit over this is what shedding leaves untouched (memory_guard.h) and
// what the heap wastes.
constexpr int64_t kWasteShare = 10;

// A part that grows by requests.
struct Part {
  int64_t MemoryDivision::*bytes;
  const char* flag;  // that asks for it; null: none
  int64_t wish;      // 0: its share
  int64_t share;     // of what is left, out of the sum of those that share
  int64_t least;     // with less it is of no use
  int64_t most;
};

int64_t SlotWish(const MemoryWishes& wishes) {
  if (wishes.bytes_per_slot == 0) return 0;
  if (wishes.slots == 0) return wishes.slot_memory;
  if (wishes.slots >
      std::numeric_limits<int64_t>::max() / wishes.bytes_per_slot) {
    return std::numeric_limits<int64_t>::max();
  }
  return wishes.slots * wishes.bytes_per_slot;
}

std::vector<Part> Parts(const MemoryWishes& wishes) {
  const int64_t slot = wishes.bytes_per_slot;
  std::vector<Part> parts = {
      // An image is smaller than a slot.
      {&MemoryDivision::images, "--session-memory", wishes.session_memory, 10,
       slot, std::numeric_limits<int64_t>::max()},
      {&MemoryDivision::records, "--replay-memory", wishes.replay_memory, 6,
       kMiB / 4, 4 * kGiB},
      {&MemoryDivision::ids, nullptr, 0, 6, kMiB, 16 * kGiB},
      // A message is kept several times while it is read.
      {&MemoryDivision::requests, nullptr, 0, 18, 8 * wishes.message_bytes,
       2 * kGiB},
      {&MemoryDivision::streams, nullptr, 0, 10, kMiB, 2 * kGiB},
  };
  if (wishes.prefix_cache != 0) {
    parts.push_back({&MemoryDivision::prefixes, "--prefix-cache",
                     wishes.prefix_cache.value_or(0), 10, 0, 16 * kGiB});
  }
  if (slot > 0) {
    parts.insert(
        parts.begin(),
        {&MemoryDivision::slots, wishes.slots > 0 ? "--slots" : "--slot-memory",
         SlotWish(wishes), 40, slot, wishes.most_slots * slot});
  }
  return parts;
}

absl::Status TooSmall(const MemoryWishes& wishes, int64_t reserve,
                      int64_t least) {
  // The reserve grows with the limit.
  const int64_t program = reserve - wishes.limit / kWasteShare;
  const int64_t needed =
      (program + wishes.weights + least) / (kWasteShare - 1) * kWasteShare +
      kWasteShare;
  return absl::ResourceExhaustedError(absl::StrCat(
      "--memory-limit: ", wishes.limit, " bytes are too few for this model: ",
      "the program takes ", program, ", the weights ", wishes.weights,
      ", sessions and calls ", least, " at least; it needs ", needed));
}

absl::Status WishTooLarge(const Part& part, const MemoryWishes& wishes,
                          int64_t left) {
  return absl::ResourceExhaustedError(
      absl::StrCat(part.flag, ": asks for ", part.wish, " bytes, ",
                   std::max<int64_t>(0, left), " are left of the ",
                   wishes.limit, " of --memory-limit"));
}

}  // namespace

absl::StatusOr<MemoryDivision> DivideMemory(const MemoryWishes& wishes) {
  const std::vector<Part> parts = Parts(wishes);
  const int64_t reserve =
      kProgramBytes + wishes.step + wishes.limit / kWasteShare;
  int64_t least = 0;   // of the parts that share
  int64_t shares = 0;  // likewise
  for (const Part& part : parts) {
    if (part.wish > 0) continue;
    least += part.least;
    shares += part.share;
  }
  int64_t left = wishes.limit - wishes.weights - reserve;
  if (left < least) return TooSmall(wishes, reserve, least);
  MemoryDivision division;
  for (const Part& part : parts) {
    if (part.wish == 0) continue;
    if (part.wish > left - least) {
      return WishTooLarge(part, wishes, left - least);
    }
    division.*part.bytes = part.wish;
    left -= part.wish;
  }
  // All have their least; what is above it is shared.
  const int64_t above = left - least;
  for (const Part& part : parts) {
    if (part.wish > 0) continue;
    const int64_t bytes =
        std::min(part.most, part.least + above / shares * part.share);
    division.*part.bytes = bytes;
    left -= bytes;
  }
  if (wishes.bytes_per_slot > 0) {
    const int64_t rest =
        SlotWish(wishes) == 0 ? division.slots % wishes.bytes_per_slot : 0;
    division.slots -= rest;
    left += rest;
  }
  // What no part takes.
  if (wishes.session_memory == 0) {
    division.images += left;
    left = 0;
  }
  division.limit = wishes.limit;
  division.weights = wishes.weights;
  division.reserve = reserve + left;
  return division;
}

}  // namespace txl
