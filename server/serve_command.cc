#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "model/cpu/tile_product.h"
#include "model/cpu/vector_target.h"
#include "program/version.h"
#include "server/access/keys_file.h"
#include "server/base/log.h"
#include "server/commands.h"
#include "server/engine/runner_options.h"
#include "server/flags.h"
#include "server/memory_budgets.h"
#include "server/quota/tenants.h"
#include "server/rpc/grpc_server.h"
#include "server/server.h"
#include "server/signals.h"
#include "server/start_up.h"
#include "server/tls/tls_credentials.h"
#include "server/watchdog.h"

namespace txl {
namespace {

// After the drain's own grace; together at most the timeout and two seconds.
constexpr absl::Duration kLastResort = absl::Milliseconds(650);

int Fail(const absl::Status& status, ExitCode code = kExitCannotStart) {
  LogPlain(absl::StrCat("txl-server: ", status.message()));
  FlushLog(kLastFlush);
  return code;
}

// Whether the start would take the files and folders that flags name.
absl::Status CheckPlaces(const ServerFlags& flags) {
  namespace fs = std::filesystem;
  struct Place {
    const char* flag;
    const std::string& path;
    bool is_folder;
  };
  for (const Place& place :
       {Place{"--data-dir", flags.store.data_dir, true},
        Place{"--image-dir", flags.store.image_dir, true},
        Place{"--audit-log", flags.records.audit_log, false},
        Place{"--trace-file", flags.records.trace_file, false}}) {
    if (place.path.empty()) continue;
    std::error_code error;
    fs::path path = fs::absolute(place.path, error).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    const char* wrong = nullptr;
    if (!fs::exists(path, error)) {
      if (!fs::is_directory(path.parent_path(), error)) {
        wrong = ": its folder does not exist";
      }
    } else if (fs::is_directory(path, error) != place.is_folder) {
      wrong = place.is_folder ? " is not a folder" : " is a folder";
    }
    if (wrong != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(place.flag, ": ", place.path, wrong));
    }
  }
  for (const auto& [flag, listen] :
       {std::pair("--listen", flags.listen),
        std::pair("--admin-listen", flags.admin_listen)}) {
    absl::string_view socket = listen;
    if (!absl::ConsumePrefix(&socket, "unix:")) continue;
    // systemd creates such a folder when it starts the service
    // (RuntimeDirectory=), so it may not be there yet.
    if (absl::StartsWith(socket, "/run/")) continue;
    const fs::path folder = fs::path(std::string(socket)).parent_path();
    std::error_code error;
    if (!folder.empty() && !fs::is_directory(folder, error)) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": ", listen, ": its folder does not exist"));
    }
  }
  if (flags.export_key_file.empty()) return absl::OkStatus();
  return ReadKeyFile(flags.export_key_file).status();
}

int CheckConfig(ServerFlags flags) {
  SetLogLevel(LogSeverity::kError);  // the answer is what is printed
  const absl::StatusOr<ModelDirectory> model = ReadModelDirectory(flags.model);
  if (!model.ok()) return Fail(model.status());
  if (!flags.tls.certificate.empty()) {
    const absl::Status tls = LoadTlsCredentials(flags.tls).status();
    if (!tls.ok()) return Fail(tls);
  }
  // Finds the device too.
  const absl::Status memory = DivideMemoryFor(model->config, &flags).status();
  if (!memory.ok()) return Fail(memory);
  if (!flags.keys.empty()) {
    const absl::Status keys = ReadKeysFile(flags.keys).status();
    if (!keys.ok()) return Fail(keys);
  }
  const absl::Status places = CheckPlaces(flags);
  if (!places.ok()) return Fail(places);
  // The weights are loaded as for serving, but into the host's memory.
  const absl::Status weights =
      LoadDirectoryWeights(*model, {.mapped = true}).status();
  if (!weights.ok()) return Fail(weights);
  if (flags.speculate != "off") {
    const absl::Status ngrams = ReadNgrams(*model).status();
    if (!ngrams.ok()) return Fail(ngrams);
  }
  if (!flags.tenants.empty()) {
    const absl::Status tenants = ReadTenants(flags.tenants).status();
    if (!tenants.ok()) return Fail(tenants);
  }
  std::printf("configuration and model directory are valid\n");
  return 0;
}

int Serve(ServerFlags flags) {
  SignalWaiter signals;
  const OpenFiles files = RaiseOpenFiles();
  BoundHeapWaste();
  const absl::Duration drain_timeout = flags.drain_timeout;
  const absl::Time start = absl::Now();
  UseVectorTarget(flags.runner.vector_target);
  Log(LogSeverity::kInfo, "start",
      {{"version", kVersion},
       {"model", flags.model},
       {"quality", flags.quality},
       {"formats", FormatsText(flags.runner)},
       {"vector_target", VectorTarget()},
       {"open_files", files.now}});
  if (!TilesRefusal().empty()) {
    Log(LogSeverity::kWarning, "no_tiles", {{"reason", TilesRefusal()}});
  }
  if (files.now >= 0 && files.now < kFewOpenFiles) {
    Log(LogSeverity::kWarning, "few_open_files", {{"limit", files.now}});
  }
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(std::move(flags));
  if (!server.ok()) return Fail(server.status());
  signals.StartServing();
  signals.OnReload([kept = server->get()] { return !kept->Reload().empty(); });
  (*server)->OnDrainRequest([&signals] { signals.RequestDrain(); });
  Log(LogSeverity::kInfo, "ready",
      {{"address", (*server)->address()},
       {"http_url", (*server)->http_url()},
       {"metrics_address", (*server)->metrics_address()},
       {"admin_address", (*server)->admin_address()},
       {"device", (*server)->engine().device},
       {"slots", (*server)->engine().slots},
       {"bytes_per_slot", (*server)->engine().bytes_per_slot},
       {"self_test", NameOf((*server)->self_test().result)},
       {"seconds", absl::ToDoubleSeconds(absl::Now() - start)}});
  FlushLog(kLastFlush);  // who sees the line below finds those above
  std::printf("listening on %s\n", (*server)->address().c_str());
  if (const std::string http = (*server)->http_url(); !http.empty()) {
    std::printf("http on %s\n", http.c_str());
  }
  if (const std::string metrics = (*server)->metrics_address();
      !metrics.empty()) {
    std::printf("metrics on http://%s/metrics\n", metrics.c_str());
  }
  if (const std::string admin = (*server)->admin_address(); !admin.empty()) {
    std::printf("administration on %s\n", admin.c_str());
  }
  std::fflush(stdout);

  signals.WaitForRequest();
  ExitAfter(drain_timeout + kDrainGrace + kLastResort);
  signals.OnReload(nullptr);
  server->reset();  // drains
  Log(LogSeverity::kInfo, "exit", {{"forced", false}});
  FlushLog(kLastFlush);
  return kExitDrained;
}

}  // namespace

int RunServeCommand(const std::vector<std::string>& arguments) {
  absl::StatusOr<ParsedFlags> parsed = ParseFlags(arguments);
  if (!parsed.ok()) {
    return Fail(parsed.status(), kExitUsage);
  }
  if (!parsed->print.empty()) {
    if (std::fputs(parsed->print.c_str(), stdout) < 0 ||
        std::fflush(stdout) != 0) {
      return Fail(absl::UnavailableError("standard output cannot be written"));
    }
    return 0;
  }
  SetLogLevel(*ParseLogSeverity(parsed->flags.log_level));
  SetLogFormat(parsed->flags.log_format == "text" ? LogFormat::kText
                                                  : LogFormat::kJson);
  SetGrpcExperiments();
#ifdef NDEBUG
  // An Abseil that was built without NDEBUG (Debian's) looks for cycles of
  // locks at every lock, gRPC's too, under one lock for all threads. The tests
  // keep that.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  absl::StatusOr<std::string> model =
      FindModel(parsed->flags.model, InstalledModels());
  if (!model.ok()) return Fail(model.status());
  parsed->flags.model = *std::move(model);
  if (parsed->flags.check_config) {
    return CheckConfig(std::move(parsed->flags));
  }
  return Serve(std::move(parsed->flags));
}

}  // namespace txl
