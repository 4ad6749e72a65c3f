#pragma once

// What every method works with. Plain pointers: the composition root owns all
// and outlives the transports.

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "model/memory/state_image.h"
#include "server/access/key_ring.h"
#include "server/api/administration.h"
#include "server/api/lifecycle.h"
#include "server/api/limits.h"
#include "server/api/model_facts.h"
#include "server/api/work_pool.h"
#include "server/base/byte_budget.h"
#include "server/base/clock.h"
#include "server/base/line_file.h"
#include "server/base/memory_division.h"
#include "server/base/memory_guard.h"
#include "server/base/self_test_report.h"
#include "server/base/task_thread.h"
#include "server/metrics/metrics.h"
#include "server/metrics/server_status.h"
#include "server/quota/tenants.h"
#include "server/scheduler/durable_sink.h"
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
  // Null: everybody is one tenant, without quotas.
  Tenants* tenants = nullptr;
  // Null: sessions end with the process.
  SessionJournal* journal = nullptr;
  // The same one where several servers share it; else null.
  SharedJournal* shared = nullptr;
  absl::Duration most_silence = absl::Seconds(4);  // as DurableSinkOptions
  bool store_late = false;  // what it confirms may be lost for two seconds
  // DurableSinkOptions of every turn on a session.
  bool tokens_wait = false;
  int64_t journal_lag = 64;
  // Of state images on disk; null: there are none.
  const ImageStore* images = nullptr;
  // Null: unlimited, as in tests of other things.
  const MemoryDivision* memory = nullptr;
  ByteBudget* requests = nullptr;  // MemoryDivision::requests
  ByteBudget* streams = nullptr;   // MemoryDivision::streams
  const MemoryGuard* guard = nullptr;
  SelfTestReport self_test;  // of the step that serves
  // Tells when the certificate for new connections is valid; null: no TLS.
  std::function<Validity()> certificate;

  // What AdminService works with. A transport of a context that has it serves
  // that service alone, one of another all but that.
  const Administration* administration = nullptr;

  // Who callers are; null: everybody may do everything.
  const KeyRing* keys = nullptr;
  LineFile* audit = nullptr;  // null: there is none
  LineFile* spans = nullptr;  // null: they are not written
  // Of the traces whose clients do not say that they sample them, in [0, 1].
  double trace_rate = 1;
  // Signs the states in exported sessions; empty: they are left out.
  std::string export_key;
  // Of the states that the engine takes.
  StateIdentity state_identity;
  RequestLimits limits;
  CallLimits call_limits;
  // What store and scheduler were given; reported by GetModel.
  SchedulerOptions scheduler_options;
  SessionStoreOptions store_options;
  absl::Duration start;  // Clock::Monotonic when the server started
};

// What each of the tenants may keep, for the session store's options. Both live
// as long as what comes of it.
SessionLimitsOf LimitsOfTenants(Tenants* tenants, Clock* clock);

// Calls `then` once the session is where the store's methods find it, if there
// is one: at once, or on the callback thread. Errors: as SessionStore::Prepare.
// `acquires`: as SessionStore::MayBeStored.
void WithSession(const ServiceContext& context, const SessionName& session,
                 std::function<void(const absl::Status&)> then,
                 bool acquires = false);
// Ends a session, stored or not, and calls `then`, at once or on the callback
// thread: false for one that is stored and that this server cannot serve,
// damaged or of another model, of which its owner may be rid. Errors: as
// SessionStore::Delete and WithSession.
void EndNamed(const ServiceContext& context, const SessionName& session,
              std::function<void(const absl::StatusOr<bool>&)> then);
// Calls `then` on the callback thread once all that the session has become by
// now is on stable storage; at once where there is no store. Errors:
// STORE_FULL, STORE_UNAVAILABLE.
void WhenStored(const ServiceContext& context, const SessionName& session,
                std::function<void(const absl::Status&)> then);
// The same of a session that was made or cut: where servers share the store
// also what refused that, SESSION_EXISTS or SESSION_MOVED.
void WhenChanged(const ServiceContext& context, const SessionName& session,
                 std::function<void(const absl::Status&)> then);
// `sink`, which hears what is on stable storage of the lease's session; itself
// where there is no store.
std::shared_ptr<TokenSink> StoredSink(const ServiceContext& context,
                                      const SessionLease& lease,
                                      std::shared_ptr<TokenSink> sink,
                                      std::shared_ptr<CancelToken> cancel);

// The server now, for GetServerStatus and for scrapes; `calls` are CallDesk's
// to know. Thread-safe.
ServerStatus ReadStatus(const ServiceContext& context);

}  // namespace txl
