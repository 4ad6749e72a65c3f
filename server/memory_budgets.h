#pragma once

// The division of memory made and handed on.

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "server/api/service_context.h"
#include "server/base/byte_budget.h"
#include "server/base/memory_guard.h"
#include "server/flags.h"

namespace txl {

struct ModelConfig;

// Divides what the flags or the host give for a model with this configuration,
// logs it and sets what the engine may take for slots and the scheduler for
// prefixes. Errors as DivideMemory and HostNeedsOf.
absl::StatusOr<MemoryDivision> DivideMemoryFor(const ModelConfig& config,
                                               ServerFlags* flags);

// The session store's parts.
void SetMemory(const MemoryDivision& memory, SessionStoreOptions* sessions);

// What methods take memory from. They and the guard's thread live as long.
class MemoryBudgets {
 public:
  explicit MemoryBudgets(const MemoryDivision& memory);
  void SetIn(ServiceContext* context) const;
  // For what streams keep elsewhere.
  ByteBudget* streams() const { return &streams_; }

 private:
  const MemoryDivision division_;
  mutable ByteBudget requests_;
  mutable ByteBudget streams_;
  const MemoryGuard guard_;
};

// Null where there is no division.
std::unique_ptr<const MemoryBudgets> MakeMemoryBudgets(
    const std::optional<MemoryDivision>& memory);

// Call before threads are started: the heap keeps at most one arena a core, or
// four, where glibc would make eight a core, each with memory of its own that
// is free but resident.
void BoundHeapWaste();

struct OpenFiles {
  int64_t before = 0;  // the soft limit, -1: none or unknown
  int64_t now = 0;     // the same after raising
};

// Raises the soft limit of open files to the hard one: every connection is one,
// and where they run out gRPC 1.51 never accepts a connection again.
OpenFiles RaiseOpenFiles();

// Below it, connections run out before memory does.
inline constexpr int64_t kFewOpenFiles = 4096;

}  // namespace txl
