#pragma once

// One turn of one token before the server says that it serves: a model that
// cannot step is found at start.

#include <cstdint>

#include "absl/status/status.h"
#include "server/scheduler/scheduler.h"
#include "server/session/session_store.h"

namespace txl {

// Blocks until the turn has ended; its error, if any.
absl::Status WarmUp(Scheduler* scheduler, SessionStore* store);

// Threads of a step on the CPU: `wanted`, or, when that is 0, one for small
// models and one per core for others. A small model's products are over before
// LibTorch's other threads have woken up, and the native step's take the cores
// that gRPC and clients need (docs/measurements.md).
int ChooseThreads(int wanted, int cores, int64_t parameters);

// Sets LibTorch's threads within an operation. Call before the first one.
void SetTorchThreads(int threads);

}  // namespace txl
