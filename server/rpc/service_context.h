#pragma once

// What every method works with. Plain pointers: the composition root owns all
// and outlives the gRPC server.

#include "absl/time/time.h"
#include "server/base/byte_budget.h"
#include "server/base/clock.h"
#include "server/base/memory_division.h"
#include "server/base/memory_guard.h"
#include "server/base/task_thread.h"
#include "server/metrics/metrics.h"
#include "server/metrics/server_status.h"
#include "server/rpc/lifecycle.h"
#include "server/rpc/limits.h"
#include "server/rpc/model_facts.h"
#include "server/rpc/work_pool.h"
#include "server/scheduler/scheduler.h"
#include "server/session/session_store.h"

namespace txl {

struct ServiceContext {
  const ModelFacts* facts = nullptr;
  SessionStore* store = nullptr;
  Scheduler* scheduler = nullptr;
  Metrics* metrics = nullptr;
  Clock* clock = nullptr;
  Lifecycle* lifecycle = nullptr;
  TaskThread* callbacks = nullptr;
  WorkPool* work = nullptr;
  // Null: unlimited, as in tests of other things.
  const MemoryDivision* memory = nullptr;
  ByteBudget* requests = nullptr;  // MemoryDivision::requests
  ByteBudget* streams = nullptr;   // MemoryDivision::streams
  const MemoryGuard* guard = nullptr;

  RequestLimits limits;
  CallLimits call_limits;
  // What store and scheduler were given; reported by GetModel.
  SchedulerOptions scheduler_options;
  SessionStoreOptions store_options;
  absl::Duration start;  // Clock::Monotonic when the server started
};

// The server now, for GetServerStatus and for scrapes; `calls` are GrpcServer's
// to know. Thread-safe.
ServerStatus ReadStatus(const ServiceContext& context);

}  // namespace txl
