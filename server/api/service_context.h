#pragma once

// What the methods work with, each with its part. Plain pointers: the
// composition root owns all and outlives the transports.

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "model/memory/state_image.h"
#include "server/access/key_ring.h"
#include "server/api/lifecycle.h"
#include "server/api/limits.h"
#include "server/api/model_facts.h"
#include "server/api/session_access.h"
#include "server/api/work_pool.h"
#include "server/base/byte_budget.h"
#include "server/base/clock.h"
#include "server/base/line_file.h"
#include "server/base/memory_guard.h"
#include "server/base/self_test_report.h"
#include "server/base/task_thread.h"
#include "server/metrics/metrics.h"
#include "server/metrics/server_status.h"
#include "server/quota/tenants.h"
#include "server/scheduler/scheduler.h"
#include "server/session/session_store.h"

namespace txl {

// A file that was read again.
struct ReloadedFile {
  std::string setting;  // the flag's name, "keys"
  std::string path;
  absl::Status status;  // an error: what was read before stays in force
};

// What AdminService asks of the server as a whole, which the composition root
// knows. Every function is thread-safe.
struct Administration {
  std::function<std::vector<ReloadedFile>()> reload;
  // Has the server drain, as SIGTERM does; returns at once. False: it serves
  // nothing yet.
  std::function<bool()> drain;
  std::function<ServerStatus()> status;
};

// The model that is served and what may be asked of it: what GetModel tells.
struct ServedModel {
  const ModelFacts* facts = nullptr;
  RequestLimits limits;
  // The options that the scheduler and the session store were created with.
  SchedulerOptions scheduler;
  SessionStoreOptions sessions;
  SelfTestReport self_test;  // of the step that serves
};

// Sessions and what runs turns on them.
struct TurnContext {
  ServedModel model;
  SessionAccess sessions;
  // Signs the states in exported sessions; empty: they are left out.
  std::string export_key;
  StateIdentity state_identity;  // of the states that the engine takes
  Scheduler* scheduler = nullptr;
  TaskThread* callbacks = nullptr;
  WorkPool* work = nullptr;
  Lifecycle* lifecycle = nullptr;
};

// The memory that calls may take: by default what they want, as in tests of
// other things.
struct CallMemory {
  MemoryDivision division;
  ByteBudget* requests = ByteBudget::Unlimited();  // MemoryDivision::requests
  ByteBudget* streams = ByteBudget::Unlimited();   // MemoryDivision::streams
  const MemoryGuard* guard = nullptr;              // null: it never sheds

  bool Shedding() const { return guard != nullptr && guard->Shedding(); }
  MemoryUse Use() const;
};

// All that calls of any kind work with.
struct ServiceContext {
  TurnContext turns;
  Metrics* metrics = nullptr;
  Clock* clock = nullptr;
  // Null: everybody is one tenant, without quotas.
  Tenants* tenants = nullptr;
  CallMemory memory;
  CallLimits call_limits;
  // Who callers are; null: everybody may do everything.
  const KeyRing* keys = nullptr;
  LineFile* audit = nullptr;  // null: there is none
  LineFile* spans = nullptr;  // null: they are not written
  // Fraction of calls traced if the client made no sampling decision, [0, 1].
  double trace_rate = 1;
  // Tells when the certificate for new connections is valid; null: no TLS.
  std::function<Validity()> certificate;
  absl::Duration start;  // Clock::Monotonic when the server started
  // What AdminService works with. A transport of a context that has it serves
  // that service alone, one of another all but that.
  const Administration* administration = nullptr;
};

// What each of the tenants may keep, for the session store's options. Both live
// as long as what comes of it.
SessionLimitsOf LimitsOfTenants(Tenants* tenants, Clock* clock);

// The server now, for GetServerStatus and for scrapes; `calls` are CallDesk's
// to know. Thread-safe.
ServerStatus ReadStatus(const ServiceContext& context);

}  // namespace txl
