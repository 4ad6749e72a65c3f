#pragma once

// The composition root: model directory, engine, sessions, scheduler and gRPC
// put together, and the life of a server from start to drain.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "model/checkpoint/model_directory.h"
#include "server/access/key_ring.h"
#include "server/admin_listener.h"
#include "server/api/lifecycle.h"
#include "server/api/model_facts.h"
#include "server/api/service_context.h"
#include "server/base/self_test_report.h"
#include "server/base/task_thread.h"
#include "server/engine/step_runner.h"
#include "server/flags.h"
#include "server/http/endpoints.h"
#include "server/http/metrics_endpoint.h"
#include "server/listen_address.h"
#include "server/memory_budgets.h"
#include "server/metrics/metrics.h"
#include "server/quota/tenants.h"
#include "server/record_files.h"
#include "server/rpc/grpc_server.h"
#include "server/stored_sessions.h"
#include "server/tenants_watch.h"
#include "server/watchdog.h"

namespace txl {

class Server {
 public:
  // Loads the model, listens, runs a warm-up turn and then serves. Errors name
  // the flag, file or address.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerFlags flags);
  // Start on a model and an engine that are there. `memory` is nothing where
  // there are no budgets but those of the flags' options; `self_test` says what
  // the engine went through.
  static absl::StatusOr<std::unique_ptr<Server>> StartWith(
      ServerFlags flags, ModelDirectory model,
      std::unique_ptr<StepRunner> runner,
      std::optional<MemoryDivision> memory = std::nullopt,
      const SelfTestReport& self_test = {});
  // Drains, unless Drain was called.
  ~Server();

  // Where the API is served, with the real port.
  const std::string& address() const { return grpc_->address(); }
  // Where HTTP is served, with the real port: http://HOST:PORT, with TLS
  // https://HOST:PORT; empty: nowhere.
  std::string http_url() const;
  // Where metrics are served, with the real port; empty: nowhere.
  std::string metrics_address() const;
  // Where it is administered, with the real port; empty: nowhere.
  std::string admin_address() const;
  // What the engine can hold and do.
  const RunnerInfo& engine() const { return runner_->info(); }
  // What the self-test at load said of it.
  const SelfTestReport& self_test() const { return self_test_; }

  // Health is NOT_SERVING and new calls are refused at once; running turns get
  // the drain timeout, the rest end with SERVER_DRAIN. Returns when every call
  // has ended; that takes at most the timeout and kDrainGrace unless the device
  // or a callback hangs.
  void Drain();

  // Reads the files of --keys, --tenants and --tls-cert again, and reopens
  // those of --audit-log and --trace-file; says which there are. Thread-safe.
  std::vector<ReloadedFile> Reload();

  // What administration calls to have the server drain; it must not wait. Until
  // it is set the server is not ready for that. Thread-safe.
  void OnDrainRequest(std::function<void()> drain)
      ABSL_LOCKS_EXCLUDED(drain_mutex_);

 private:
  Server(ServerFlags flags, ModelDirectory model,
         std::unique_ptr<StepRunner> runner,
         std::optional<MemoryDivision> memory, const SelfTestReport& self_test);
  // The store of --data-dir, if there is one; before sessions are.
  absl::Status OpenStore();
  absl::Status OpenKeys();
  void MakeParts();
  // Tenants' stored sessions: a store that is damaged serves what it can.
  void CountStored();
  absl::Status StartTenants();
  absl::Status StartHttp();
  absl::Status StartMetrics();
  absl::Status StartAdmin();
  Administration MakeAdministration();
  // False: OnDrainRequest has not set anything to call yet.
  bool RequestDrain() ABSL_LOCKS_EXCLUDED(drain_mutex_);
  void StartWatches();
  // NOT_SERVING, and the process ends: the disk has failed.
  void EndWithStore();
  bool WaitUntilIdle(absl::Duration timeout);

  ServerFlags flags_;  // constant once the parts are made
  const ModelDirectory model_;
  const std::unique_ptr<StepRunner> runner_;
  const SelfTestReport self_test_;
  ModelFacts facts_;
  const std::unique_ptr<const MemoryBudgets> memory_;  // may be null
  std::unique_ptr<RecordFiles> records_;
  std::unique_ptr<KeyRing> keys_;  // null: there are none
  ServiceContext context_;
  Metrics metrics_;
  Lifecycle lifecycle_;
  TaskThread callbacks_;
  std::unique_ptr<WorkPool> work_;
  std::unique_ptr<StoredSessions> stored_;  // null: there is none
  std::unique_ptr<Tenants> tenants_;        // null: there are none
  std::unique_ptr<TenantsWatch> tenants_watch_;
  std::unique_ptr<SessionStore> store_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<CertificateWatch> certificates_;  // null: no TLS
  SocketLock socket_lock_;                          // outlives grpc_
  std::unique_ptr<GrpcServer> grpc_;
  std::unique_ptr<HttpFront> http_;  // its calls stand on the desk of grpc_
  std::unique_ptr<MetricsEndpoint> endpoint_;
  absl::Mutex drain_mutex_;
  std::function<void()> drain_ ABSL_GUARDED_BY(drain_mutex_);
  std::unique_ptr<AdminListener> admin_;
  std::unique_ptr<Periodic> refreshing_;
  std::unique_ptr<HealthWatch> health_;
  std::unique_ptr<ListenerWatch> listener_;
};

// What a drain takes beyond its timeout: ending turns, then cutting off
// readers that do not read.
inline constexpr absl::Duration kDrainGrace = absl::Milliseconds(1300);

}  // namespace txl
