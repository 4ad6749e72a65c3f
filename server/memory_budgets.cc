#include "server/memory_budgets.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "model/base/host_memory.h"
#include "model/base/status_macros.h"
#include "model/config/model_config.h"
#include "model/text/ngram_table.h"
#include "server/base/log.h"
#include "server/engine/host_needs.h"

namespace txl {
namespace {

constexpr unsigned kLeastArenas = 4;

MemoryGuardOptions GuardOptions(const MemoryDivision& memory) {
  MemoryGuardOptions options;
  options.limit = memory.limit;
  return options;
}

// `guesses`: of the weights, what tokens are guessed from.
void LogDivision(const MemoryDivision& memory, int64_t guesses) {
  Log(LogSeverity::kInfo, "memory",
      {{"limit", memory.limit},
       {"weights", memory.weights},
       {"slots", memory.slots},
       {"images", memory.images},
       {"prefixes", memory.prefixes},
       {"ids", memory.ids},
       {"records", memory.records},
       {"requests", memory.requests},
       {"streams", memory.streams},
       {"reserve", memory.reserve},
       {"guesses", guesses}});
}

// Of the table that SetUpSpeculation reads.
int64_t NgramBytes(const ServerFlags& flags) {
  std::error_code none;
  const auto bytes = std::filesystem::file_size(
      absl::StrCat(flags.model, "/", kNgramsName), none);
  return none ? 0 : static_cast<int64_t>(bytes);
}

}  // namespace

absl::StatusOr<MemoryDivision> DivideMemoryFor(const ModelConfig& config,
                                               ServerFlags* flags) {
  TXL_ASSIGN_OR_RETURN(const HostNeeds needs,
                       HostNeedsOf(config, flags->runner));
  const bool on_host = needs.bytes_per_slot > 0;
  const bool guesses =
      on_host && flags->speculate != "off" && flags->runner.step != "torch";
  MemoryWishes wishes;
  wishes.limit = flags->memory_limit > 0
                     ? flags->memory_limit
                     : UsualMemoryLimit(AvailableHostBytes(), ResidentBytes());
  const int64_t guess_bytes = guesses ? NgramBytes(*flags) : 0;
  wishes.weights = needs.weights + guess_bytes;
  wishes.step = needs.step;
  wishes.bytes_per_slot = needs.bytes_per_slot;
  wishes.most_slots = needs.most_slots;
  wishes.message_bytes = flags->limits.message_bytes;
  wishes.slots = flags->runner.slots;
  wishes.slot_memory = flags->runner.slot_bytes;
  wishes.session_memory = flags->session_memory;
  wishes.replay_memory = flags->replay_memory;
  wishes.prefix_cache = flags->prefix_cache;
  TXL_ASSIGN_OR_RETURN(const MemoryDivision memory, DivideMemory(wishes));
  if (on_host) flags->runner.slot_bytes = memory.slots;
  flags->scheduler.prefix_cache_bytes = memory.prefixes;
  LogDivision(memory, guess_bytes);
  return memory;
}

void SetMemory(const MemoryDivision& memory, SessionStoreOptions* sessions) {
  sessions->image_bytes = memory.images;
  sessions->id_bytes = memory.ids;
  sessions->turn_record_bytes = memory.records;
}

MemoryBudgets::MemoryBudgets(const MemoryDivision& memory)
    : division_(memory),
      requests_(memory.requests),
      streams_(memory.streams),
      guard_(GuardOptions(memory)) {}

void MemoryBudgets::SetIn(ServiceContext* context) const {
  context->memory = {division_, &requests_, &streams_, &guard_};
}

std::unique_ptr<const MemoryBudgets> MakeMemoryBudgets(
    const std::optional<MemoryDivision>& memory) {
  if (!memory.has_value()) return nullptr;
  return std::make_unique<const MemoryBudgets>(*memory);
}

void BoundHeapWaste() {
  const unsigned arenas =
      std::max(kLeastArenas, std::thread::hardware_concurrency());
  mallopt(M_ARENA_MAX, static_cast<int>(arenas));
}

namespace {

int64_t Number(rlim_t limit) {
  return limit == RLIM_INFINITY ? -1 : static_cast<int64_t>(limit);
}

}  // namespace

OpenFiles RaiseOpenFiles() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {-1, -1};
  OpenFiles files = {.before = Number(limit.rlim_cur)};
  const rlim_t soft = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = soft;
  files.now = Number(limit.rlim_cur);
  return files;
}

}  // namespace txl
