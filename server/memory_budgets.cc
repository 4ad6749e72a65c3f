#include "server/memory_budgets.h"

#include <malloc.h>

#include <algorithm>
#include <thread>

#include "model/base/status_macros.h"
#include "model/config/model_config.h"
#include "server/base/log.h"
#include "server/engine/host_memory.h"
#include "server/engine/host_needs.h"

namespace txl {
namespace {

constexpr unsigned kLeastArenas = 4;

MemoryGuardOptions GuardOptions(const MemoryDivision& memory) {
  MemoryGuardOptions options;
  options.limit = memory.limit;
  return options;
}

void LogDivision(const MemoryDivision& memory) {
  Log(LogSeverity::kInfo, "memory",
      {{"limit", memory.limit},
       {"weights", memory.weights},
       {"slots", memory.slots},
       {"images", memory.images},
       {"ids", memory.ids},
       {"records", memory.records},
       {"requests", memory.requests},
       {"streams", memory.streams},
       {"reserve", memory.reserve}});
}

}  // namespace

absl::StatusOr<MemoryDivision> DivideMemoryFor(const ModelConfig& config,
                                               ServerFlags* flags) {
  TXL_ASSIGN_OR_RETURN(const HostNeeds needs,
                       HostNeedsOf(config, flags->runner));
  MemoryWishes wishes;
  wishes.limit = flags->memory_limit > 0
                     ? flags->memory_limit
                     : UsualMemoryLimit(AvailableHostBytes(), ResidentBytes());
  wishes.weights = needs.weights;
  wishes.step = needs.step;
  wishes.bytes_per_slot = needs.bytes_per_slot;
  wishes.most_slots = needs.most_slots;
  wishes.message_bytes = flags->limits.message_bytes;
  wishes.slots = flags->runner.slots;
  wishes.slot_memory = flags->runner.slot_bytes;
  wishes.session_memory = flags->session_memory;
  wishes.replay_memory = flags->replay_memory;
  TXL_ASSIGN_OR_RETURN(const MemoryDivision memory, DivideMemory(wishes));
  if (needs.bytes_per_slot > 0) flags->runner.slot_bytes = memory.slots;
  LogDivision(memory);
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
  context->memory = &division_;
  context->requests = &requests_;
  context->streams = &streams_;
  context->guard = &guard_;
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

}  // namespace txl
