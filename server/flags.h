#pragma once

// Every setting of txl-server: names, defaults, ranges and where values come
// from (command line, then environment TXL_NAME, then the TOML file of
// --config, then the default). docs/settings.md is made of it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/api/limits.h"
#include "server/engine/runner_options.h"
#include "server/flag_table.h"
#include "server/http/http_options.h"
#include "server/listen_address.h"
#include "server/record_files.h"
#include "server/scheduler/scheduler.h"
#include "server/session/session_store.h"
#include "server/stored_sessions.h"
#include "server/tls/tls_credentials.h"

namespace txl {

struct HttpFlags {
  std::string listen;   // HOST:PORT; empty: no HTTP front
  std::string hosts;    // names and addresses with commas between them
  std::string origins;  // with commas between them
  absl::Duration ping = absl::ZeroDuration();
  int64_t connections = HttpOptions().connections;
  int64_t connections_per_host = HttpOptions().connections_per_peer;
};

struct ServerFlags {
  std::string model;  // model directory
  std::string listen = "127.0.0.1:50051";
  std::string metrics_listen;  // HOST:PORT; empty: no metrics endpoint
  HttpFlags http;
  TlsFiles tls;           // of gRPC and HTTP; a certificate or nothing at all
  bool insecure = false;  // beyond loopback without TLS, too
  // File of the key that signs the states in exported sessions; empty: none.
  std::string export_key_file;
  std::string tenants;  // file of tenants' quotas; empty: there are none
  // File of the keys that callers need; empty: callers need none.
  std::string keys;
  RecordFlags records;
  std::string admin_listen = kAdminAuto;
  std::string log_level = "info";
  std::string log_format = "json";
  // Octal permissions of a Unix socket; empty: what the umask leaves.
  std::string socket_mode;
  // Bytes of host memory (DivideMemory); the first 0: what the machine gives,
  // the others: by division. StepRunnerOptions has the slots'.
  int64_t memory_limit = 0;
  int64_t session_memory = 0;
  int64_t replay_memory = 0;
  std::optional<int64_t> prefix_cache;  // absent: by division; 0: none
  int32_t threads = 0;  // of a step on the CPU; 0: see ChooseThreads
  absl::Duration drain_timeout = absl::Seconds(30);
  // Work waits and no step ended for this long: health is NOT_SERVING.
  absl::Duration stall_limit = absl::Seconds(2);
  // A hang of this length ends the process with kExitNotServing. 0: never.
  absl::Duration hang_limit = absl::Seconds(30);
  // The process ends with kExitNotServing if its own connections to `listen`
  // are not answered for this long. 0: never.
  absl::Duration listener_limit = absl::Seconds(5);

  std::string quality = kExactQuality;  // what `runner` has was set by it, too
  StepRunnerOptions runner;
  SchedulerOptions scheduler;
  std::string speculate = "off";  // or "auto": see SetUpSpeculation
  SessionStoreOptions sessions;   // but for bytes: see above
  RequestLimits limits;
  CallLimits calls;
  StoreFlags store;

  std::string config;  // file of settings; empty: none
  bool print_config = false;
  bool check_config = false;
};

struct ParsedFlags {
  ServerFlags flags;
  // Not empty: --help, --version or --print-config was asked for; print it and
  // exit with 0.
  std::string print;
};

// `arguments` without the program's name. Reads the environment and the file of
// --config. Errors: InvalidArgument naming the flag, variable or key.
absl::StatusOr<ParsedFlags> ParseFlags(std::vector<std::string> arguments);

// Every setting. The table does not outlive `flags`.
void AddServerFlags(ServerFlags* flags, FlagTable* table);

}  // namespace txl
