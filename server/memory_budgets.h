#pragma once

// The division of memory made and handed on.

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "server/api/service_context.h"
#include "server/base/byte_budget.h"
#include "server/base/memory_division.h"
#include "server/base/memory_guard.h"
#include "server/flags.h"

namespace txl {

struct ModelConfig;

// Divides what the flags or the host give for a model with this configuration,
// and for its `draft`'s if there is one, logs it and sets what the engine may
// take for slots of the model. Errors as DivideMemory and HostNeedsOf.
absl::StatusOr<MemoryDivision> DivideMemoryFor(
    const ModelConfig& config, ServerFlags* flags,
    const ModelConfig* draft = nullptr);

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

}  // namespace txl
