#include "server/server.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/canonical_tensors.h"
#include "program/version.h"
#include "server/api/session_access.h"
#include "server/base/log.h"
#include "server/commands.h"
#include "server/engine/load_step_runner.h"
#include "server/signals.h"
#include "server/start_up.h"
#include "server/watchdog.h"

namespace txl {
namespace {

constexpr absl::Duration kEndTime = absl::Milliseconds(500);
// Of the grace, for what is not on the disk yet.
constexpr absl::Duration kStoreTime = absl::Milliseconds(300);
// Likewise, for administration: its last answer, that the server drains.
constexpr absl::Duration kAdminTime = absl::Milliseconds(100);
// What connecting to ourselves may take: three attempts fit the default limit.
constexpr absl::Duration kProbeTime = absl::Milliseconds(1500);
constexpr absl::Duration kRefreshInterval = absl::Seconds(1);
constexpr absl::Duration kPollInterval = absl::Milliseconds(10);

ModelFacts MakeFacts(const ModelDirectory& model, const RunnerInfo& info) {
  ModelFacts facts;
  facts.name = model.name;
  facts.fingerprint = model.fingerprint;
  facts.config = model.config;
  facts.generation = model.generation;
  facts.vocabulary = model.vocabulary.get();
  facts.kinds = model.kinds;
  if (facts.vocabulary != nullptr) {
    facts.midi = MidiEncoder::Make(*facts.vocabulary);
  }
  facts.memory_length = info.mem_len;
  facts.window = info.window;
  facts.bytes_per_session = info.bytes_per_slot;
  facts.device = info.device;
  facts.kernel = info.identity.kernel;
  facts.form = info.form;
  facts.weight_dtype = info.weight_dtype;
  facts.memory_dtype = info.identity.row_dtype;
  facts.server_version = kVersion;
  return facts;
}

ExporterFacts MakeExporterFacts(const ModelFacts& model) {
  return {.version = model.server_version,
          .model = model.name,
          .fingerprint = model.fingerprint,
          .device = model.device,
          .kernel = model.kernel,
          .form = model.form,
          .weight_dtype = model.weight_dtype,
          .memory_dtype = model.memory_dtype,
          .bytes_per_slot = model.bytes_per_session};
}

ServerFlags WithModel(ServerFlags flags, const ModelDirectory& model,
                      const RunnerInfo& info,
                      const std::optional<MemoryDivision>& memory) {
  if (memory.has_value()) SetMemory(*memory, &flags.sessions);
  flags.sessions.bytes_per_slot = info.bytes_per_slot;
  flags.sessions.vocabulary = model.vocabulary.get();
  return flags;
}

// `stored` may be null.
SessionStorage StorageOf(const ServerFlags& flags,
                         const StoredSessions* stored) {
  SessionStorage storage;
  if (stored == nullptr) return storage;
  storage.sink.journal = stored->journal();
  storage.sink.tokens_wait = flags.store.durability == "token";
  storage.sink.most_lag = flags.store.journal_lag;
  storage.sink.most_silence = flags.store.session_lease * 4 / 5;
  storage.sink.park_events = flags.scheduler.park_events;
  storage.shared = stored->shared();
  storage.images = stored->images();
  storage.late = stored->late();
  return storage;
}

// What requests may ask of a step, as far as steps differ in it.
StepRunnerOptions WithLimits(StepRunnerOptions options,
                             const RequestLimits& limits,
                             const ModelDirectory& model) {
  options.banned_ids = limits.stop_tokens +
                       static_cast<int64_t>(model.generation.end_tokens.size());
  options.top_logprobs = limits.logprobs;
  return options;
}

}  // namespace

Server::Server(ServerFlags flags, ModelDirectory model,
               std::unique_ptr<StepRunner> runner,
               std::optional<MemoryDivision> memory,
               const SelfTestReport& self_test)
    : flags_(WithModel(std::move(flags), model, runner->info(), memory)),
      model_(std::move(model)),
      runner_(std::move(runner)),
      self_test_(self_test),
      facts_(MakeFacts(model_, runner_->info())),
      memory_(MakeMemoryBudgets(memory)) {}

absl::Status Server::OpenStore() {
  if (!flags_.store.kept()) return absl::OkStatus();
  TXL_ASSIGN_OR_RETURN(
      stored_, StoredSessions::Open(
                   flags_.store, {model_.fingerprint, model_.config.vocab_size},
                   memory_ == nullptr ? nullptr : memory_->streams()));
  flags_.sessions.journal = stored_->journal();
  flags_.sessions.shared = stored_->shared();
  flags_.sessions.images = stored_->images();
  flags_.sessions.rebuild_ids = runner_->info().rebuild_ids;
  return absl::OkStatus();
}

absl::Status Server::StartTenants() {
  if (flags_.tenants.empty()) return absl::OkStatus();
  tenants_ = std::make_unique<Tenants>(
      [this](const std::string& name) { return metrics_.AddTenant(name); });
  absl::StatusOr<std::unique_ptr<TenantsWatch>> watch = TenantsWatch::Start(
      flags_.tenants, tenants_.get(), Clock::Real(), records_->audit());
  if (!watch.ok()) {
    return absl::Status(watch.status().code(),
                        absl::StrCat("--tenants: ", watch.status().message()));
  }
  tenants_watch_ = *std::move(watch);
  return absl::OkStatus();
}

absl::Status Server::OpenKeys() {
  if (flags_.keys.empty()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<KeyRing>> keys =
      KeyRing::Open(flags_.keys, Clock::Real(), records_->audit());
  if (!keys.ok()) {
    return absl::Status(keys.status().code(),
                        absl::StrCat("--keys: ", keys.status().message()));
  }
  keys_ = *std::move(keys);
  context_.keys = keys_.get();
  refreshing_ = std::make_unique<Periodic>(kRefreshInterval,
                                           [this] { keys_->Refresh(); });
  return absl::OkStatus();
}

void Server::MakeParts() {
  Clock* clock = Clock::Real();
  if (tenants_ != nullptr) {
    flags_.sessions.limits_of = LimitsOfTenants(tenants_.get(), clock);
  }
  store_ = std::make_unique<SessionStore>(flags_.sessions, clock);
  scheduler_ = std::make_unique<Scheduler>(flags_.scheduler, runner_.get(),
                                           store_.get(), &metrics_, clock);
  if (tenants_watch_ != nullptr) {
    tenants_watch_->OnRemoved([this](const std::string& tenant) {
      scheduler_->ForgetPrefixes(tenant);
    });
  }
  TurnContext& turns = context_.turns;
  turns.model = {&facts_, flags_.limits, flags_.scheduler, flags_.sessions,
                 self_test_};
  turns.sessions = SessionAccess(store_.get(), scheduler_.get(), &callbacks_,
                                 StorageOf(flags_, stored_.get()));
  turns.scheduler = scheduler_.get();
  context_.metrics = &metrics_;
  context_.clock = clock;
  turns.lifecycle = &lifecycle_;
  turns.callbacks = &callbacks_;
  WorkPoolOptions work = {.retry_after = flags_.scheduler.retry_after};
  work.threads =
      WorkThreads(static_cast<int>(std::thread::hardware_concurrency()));
  work_ = std::make_unique<WorkPool>(work, clock);
  turns.work = work_.get();
  context_.tenants = tenants_.get();
  records_->SetIn(&context_);
  if (memory_ != nullptr) memory_->SetIn(&context_);
  turns.state_identity = runner_->info().identity;
  context_.call_limits = flags_.calls;
  context_.start = clock->Monotonic();
}

void Server::CountStored() {
  const absl::Status counted = store_->CountStored();
  if (counted.ok()) return;
  Log(LogSeverity::kError, "store", {{"uncounted", counted.message()}});
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerFlags flags) {
  if (!flags.tls.certificate.empty()) {
    // Before weights are loaded, which may take minutes.
    TXL_RETURN_IF_ERROR(LoadTlsCredentials(flags.tls).status());
  }
  TXL_ASSIGN_OR_RETURN(ModelDirectory model, ReadModelDirectory(flags.model));
  flags.runner.threads = ChooseThreads(
      flags.threads, static_cast<int>(std::thread::hardware_concurrency()),
      RequiredParameters(model.config));
  SetTorchThreads(flags.runner.threads);
  flags.runner = WithLimits(flags.runner, flags.limits, model);
  TXL_ASSIGN_OR_RETURN(const MemoryDivision memory,
                       DivideMemoryFor(model.config, &flags));
  SelfTestReport self_test;
  TXL_ASSIGN_OR_RETURN(std::unique_ptr<StepRunner> runner,
                       LoadStepRunner(model, flags.runner, &self_test));
  return StartWith(std::move(flags), std::move(model), std::move(runner),
                   memory, self_test);
}

absl::StatusOr<std::unique_ptr<Server>> Server::StartWith(
    ServerFlags flags, ModelDirectory model, std::unique_ptr<StepRunner> runner,
    std::optional<MemoryDivision> memory, const SelfTestReport& self_test) {
  std::unique_ptr<Server> server(new Server(std::move(flags), std::move(model),
                                            std::move(runner), memory,
                                            self_test));
  TXL_ASSIGN_OR_RETURN(server->records_,
                       RecordFiles::Open(server->flags_.records));
  TXL_RETURN_IF_ERROR(server->OpenStore());
  TXL_RETURN_IF_ERROR(server->StartTenants());
  TXL_RETURN_IF_ERROR(server->OpenKeys());
  TXL_RETURN_IF_ERROR(SetUpSpeculation(server->flags_.speculate, server->model_,
                                       server->runner_->info(),
                                       &server->flags_.scheduler));
  server->MakeParts();
  server->CountStored();
  if (const std::string& file = server->flags_.export_key_file; !file.empty()) {
    TXL_ASSIGN_OR_RETURN(server->context_.turns.export_key, ReadKeyFile(file));
  }
  TXL_ASSIGN_OR_RETURN(server->socket_lock_, LockSocket(server->flags_.listen));
  if (const TlsFiles& files = server->flags_.tls; !files.certificate.empty()) {
    TXL_ASSIGN_OR_RETURN(server->certificates_, CertificateWatch::Start(files));
    server->context_.certificate = [watch = server->certificates_.get()] {
      const auto current = watch->Current();
      return Validity{current->not_before, current->not_after};
    };
  }
  TXL_ASSIGN_OR_RETURN(
      server->grpc_, GrpcServer::Start(server->flags_.listen, &server->context_,
                                       server->certificates_.get()));
  TXL_RETURN_IF_ERROR(
      SetSocketMode(server->flags_.listen, server->flags_.socket_mode));
  TXL_RETURN_IF_ERROR(server->StartHttp());
  TXL_RETURN_IF_ERROR(server->StartMetrics());
  TXL_RETURN_IF_ERROR(server->StartAdmin());
  TXL_RETURN_IF_ERROR(WarmUp(server->scheduler_.get(), server->store_.get()));
  server->lifecycle_.SetReady();
  server->grpc_->SetServing(true);
  server->StartWatches();
  if (server->stored_ != nullptr) {
    server->stored_->Start(server->store_.get(), server->scheduler_.get(),
                           [kept = server.get()] { kept->EndWithStore(); });
  }
  return server;
}

void Server::StartWatches() {
  HealthWatchOptions health;
  health.stall_limit = flags_.stall_limit;
  health.phase = [this] { return lifecycle_.phase(); };
  health.stall = [this] { return scheduler_->StallTime(); };
  health.set_serving = [this](bool serving) { grpc_->SetServing(serving); };
  if (SharedJournal* const shared = flags_.sessions.shared; shared != nullptr) {
    health.store_silent = [shared] {
      return shared->Silent() >= kStoreSilence;
    };
  }
  health.hang_limit = flags_.hang_limit;
  health.hung = [](absl::Duration stall) {
    GiveUp("hang", absl::StrCat("no step for ", absl::FormatDuration(stall)));
  };
  health_ = std::make_unique<HealthWatch>(std::move(health));

  if (flags_.listener_limit == absl::ZeroDuration()) return;
  const absl::StatusOr<ListenerProbe> probe = ListenerProbe::Create(
      address(), flags_.listener_limit, certificates_ != nullptr);
  if (!probe.ok()) {
    Log(LogSeverity::kWarning, "unwatched",
        {{"address", address()}, {"error", probe.status().message()}});
    return;
  }
  ListenerWatchOptions listener;
  listener.limit = flags_.listener_limit;
  listener.attempt = [probe = *probe] { return probe.Try(kProbeTime); };
  listener.deaf = [](const absl::Status& last) {
    GiveUp("listener", last.message());
  };
  listener_ = std::make_unique<ListenerWatch>(std::move(listener));
}

absl::Status Server::StartHttp() {
  if (flags_.http.listen.empty()) return absl::OkStatus();
  HttpOptions options;
  options.listen = flags_.http.listen;
  options.certificates = certificates_.get();
  options.hosts = ItemsOf(flags_.http.hosts);
  options.origins = ItemsOf(flags_.http.origins);
  options.ping = flags_.http.ping;
  options.connections = flags_.http.connections;
  options.connections_per_peer = flags_.http.connections_per_host;
  HttpApi api;
  api.desk = grpc_->desk();
  const auto collector = std::make_shared<const StatusCollector>(
      MakeExporterFacts(facts_), [this] { return grpc_->Status(); });
  api.metrics = [collector] { return MetricsText(*collector); };
  absl::StatusOr<std::unique_ptr<HttpFront>> front =
      HttpFront::Start(std::move(options), std::move(api));
  if (!front.ok()) {
    return absl::Status(
        front.status().code(),
        absl::StrCat("--http-listen: ", front.status().message()));
  }
  http_ = *std::move(front);
  return absl::OkStatus();
}

std::string Server::http_url() const {
  if (http_ == nullptr) return "";
  return absl::StrCat(certificates_ == nullptr ? "http://" : "https://",
                      http_->address());
}

absl::Status Server::StartMetrics() {
  if (flags_.metrics_listen.empty()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<MetricsEndpoint>> endpoint =
      MetricsEndpoint::Start(
          flags_.metrics_listen, MakeExporterFacts(facts_),
          [this] { return grpc_->Status(); }, grpc_->desk());
  if (!endpoint.ok()) {
    return absl::Status(
        endpoint.status().code(),
        absl::StrCat("--metrics-listen: ", endpoint.status().message()));
  }
  endpoint_ = *std::move(endpoint);
  return absl::OkStatus();
}

std::string Server::metrics_address() const {
  return endpoint_ == nullptr ? "" : endpoint_->address();
}

Server::~Server() {
  if (grpc_ != nullptr) Drain();
  tenants_watch_.reset();  // it calls the scheduler
  scheduler_.reset();      // before the threads and stores that it uses
  if (stored_ != nullptr) stored_->Stop();
}

void Server::EndWithStore() {
  grpc_->SetServing(false);
  GiveUp("store", "the storage of --data-dir has failed", kExitCannotStart);
}

bool Server::WaitUntilIdle(absl::Duration timeout) {
  const absl::Duration end = context_.clock->Monotonic() + timeout;
  while (!scheduler_->Idle()) {
    if (context_.clock->Monotonic() >= end) return false;
    absl::SleepFor(kPollInterval);
  }
  return true;
}

void Server::Drain() {
  if (lifecycle_.phase() == ServerPhase::kDraining) return;
  const bool was_idle = scheduler_->Idle();
  listener_.reset();
  health_.reset();  // it must not say SERVING again
  grpc_->SetServing(false);
  lifecycle_.SetDraining();
  scheduler_->StartDrain();
  Log(LogSeverity::kInfo, "drain",
      {{"idle", was_idle},
       {"timeout_seconds", absl::ToDoubleSeconds(flags_.drain_timeout)}});
  const absl::Duration end = context_.clock->Monotonic() + flags_.drain_timeout;
  const bool idle = WaitUntilIdle(flags_.drain_timeout);
  const absl::Duration last = context_.clock->Monotonic() + kDrainGrace;
  if (!idle) {
    scheduler_->EndAll();
    WaitUntilIdle(kEndTime);
  }
  if (stored_ != nullptr) {
    stored_->Drain(std::max(end - context_.clock->Monotonic(), kStoreTime));
  }
  if (admin_ != nullptr) admin_->Shutdown(kAdminTime);
  // Both get what is left of the grace, one after the other; where the store
  // took the drain's own time, what its parts leave.
  const absl::Duration until =
      std::max(last, context_.clock->Monotonic() + kDrainGrace - kEndTime -
                         kStoreTime - kAdminTime);
  const auto rest = [&] {
    return std::max(until - context_.clock->Monotonic(), absl::ZeroDuration());
  };
  if (http_ != nullptr) http_->Shutdown(rest());
  grpc_->Shutdown(rest());
  endpoint_.reset();
}

// Server: how it is administered.

absl::Status Server::StartAdmin() {
  const std::string listen =
      AdminAddress(flags_.admin_listen, flags_.store.data_dir);
  if (listen.empty()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<AdminListener>> admin = AdminListener::Start(
      listen, MakeAdministration(), context_, certificates_.get());
  if (admin.ok()) {
    admin_ = *std::move(admin);
    return absl::OkStatus();
  }
  if (flags_.admin_listen != kAdminAuto) {
    return absl::Status(
        admin.status().code(),
        absl::StrCat("--admin-listen: ", admin.status().message()));
  }
  // A folder that can have no socket keeps nobody's server from starting.
  Log(LogSeverity::kWarning, "no_administration",
      {{"error", admin.status().message()}});
  return absl::OkStatus();
}

Administration Server::MakeAdministration() {
  Administration administration;
  administration.reload = [this] { return Reload(); };
  administration.drain = [this] { return RequestDrain(); };
  administration.status = [this] { return grpc_->Status(); };
  return administration;
}

std::string Server::admin_address() const {
  return admin_ == nullptr ? "" : admin_->address();
}

void Server::OnDrainRequest(std::function<void()> drain) {
  absl::MutexLock lock(&drain_mutex_);
  drain_ = std::move(drain);
}

bool Server::RequestDrain() {
  absl::MutexLock lock(&drain_mutex_);
  if (drain_ == nullptr) return false;
  drain_();
  return true;
}

std::vector<ReloadedFile> Server::Reload() {
  // First: what is read below is written to the new files.
  std::vector<ReloadedFile> files = records_->Reopen();
  if (keys_ != nullptr) {
    files.push_back({"keys", flags_.keys, keys_->Reload()});
  }
  if (tenants_watch_ != nullptr) {
    files.push_back({"tenants", flags_.tenants, tenants_watch_->Reload()});
  }
  if (certificates_ != nullptr) {
    files.push_back(
        {"tls-cert", flags_.tls.certificate, certificates_->Look()});
  }
  return files;
}

}  // namespace txl
