#include "server/flags.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "model/base/number_format.h"
#include "model/base/status_macros.h"
#include "program/flag_checks.h"
#include "server/engine/runner_options.h"
#include "server/flag_table.h"
#include "server/listen_address.h"

namespace txl {
namespace {
constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();
constexpr int64_t kMaxRows = 1 << 16;

// Octal permissions, or nothing; else what is wrong.
std::string CheckMode(const std::string& mode) {
  const bool octal = mode.size() <= 4 &&
                     mode.find_first_not_of("01234567") == std::string::npos &&
                     (mode.size() < 4 || mode[0] == '0');
  return octal
             ? ""
             : absl::StrCat("\"", mode, "\" is not a mode in octal like 0660");
}

// HOST:PORT, or nothing; else what is wrong.
std::string CheckOptionalAddress(const std::string& address) {
  return address.empty() ? "" : CheckHostPort(address);
}

void AddProcessFlags(ServerFlags* flags, FlagTable* table) {
  table->Text("model", &flags->model,
              "Model directory, or the name of a model installed with the "
              "program (../share/txl/models from its folder), like "
              "shakespeare; required");
  table
      ->Text("listen", &flags->listen,
             "Address of the gRPC API: HOST:PORT (port 0: any free one, "
             "printed at start) or unix:PATH. Beyond loopback it needs "
             "--tls-cert or --insecure")
      ->check(CLI::Validator(CheckListen, ""));
  table
      ->Text("socket-mode", &flags->socket_mode,
             "Mode of the socket of unix:PATH in octal, like 0660 for its "
             "owner and group; empty: what the umask leaves")
      ->check(CLI::Validator(CheckMode, ""));
  table
      ->Text("metrics-listen", &flags->metrics_listen,
             "Address of Prometheus metrics, http://HOST:PORT/metrics (port "
             "0: any free one), and of /health for probes (200 while READY, "
             "else 503). It has no TLS; empty: none")
      ->check(CLI::Validator(CheckOptionalAddress, ""));
  table->Choice("log-level", &flags->log_level,
                {"debug", "info", "warning", "error"},
                "Least severe line in the log");
  table->Choice("log-format", &flags->log_format, {"json", "text"},
                "json for programs, text for people: 12:00:00.000 INFO ready "
                "slots=64");
  table->Bytes("memory-limit", &flags->memory_limit, 0, kInt64Max,
               "Bytes of host memory that the process may use, divided once at "
               "the start; 0: 15/16 of the memory that the machine or cgroup "
               "has free");
  table->Duration("drain-timeout", &flags->drain_timeout, absl::ZeroDuration(),
                  absl::Hours(1), "Time that running turns have after SIGTERM");
}

void AddAccessFlags(ServerFlags* flags, FlagTable* table) {
  table->Text("keys", &flags->keys,
              "File of the keys that callers need (txl-server keys --help), "
              "read again when it changes; empty: anyone may do everything");
  table->Text("tenants", &flags->tenants,
              "TOML file of tenants, their weights and quotas, read again when "
              "it changes and on SIGHUP; empty: everyone is one tenant");
  table
      ->Text("admin-listen", &flags->admin_listen,
             "Address of administration (txl admin): unix:PATH, for the "
             "server's own user only, or HOST:PORT on loopback. off: none. "
             "auto: admin.sock in --data-dir, without that folder none")
      ->check(CLI::Validator(CheckAdminListen, ""));
}

void AddHttpFlags(HttpFlags* flags, FlagTable* table) {
  table
      ->Text("http-listen", &flags->listen,
             "Address of the HTTP API and its page: HOST:PORT (port 0: any "
             "free one); empty: none. Beyond loopback it needs --tls-cert or "
             "--insecure")
      ->check(CLI::Validator(CheckOptionalAddress, ""));
  table
      ->Text("http-hosts", &flags->hosts,
             "Host names of the HTTP API besides those of loopback, separated "
             "by commas: those that a proxy before it passes on")
      ->check(CLI::Validator(CheckHosts, ""));
  table
      ->Text("http-origins", &flags->origins,
             "Origins whose pages may use the HTTP API besides its own, like "
             "https://chat.example, separated by commas")
      ->check(CLI::Validator(CheckOrigins, ""));
  table->Number("http-connections", &flags->connections, 1, 1 << 16,
                "HTTP connections at a time; beyond it 429");
  table->Number("http-connections-per-host", &flags->connections_per_host, 1,
                1 << 16,
                "HTTP connections of one address at a time; behind a proxy set "
                "it to the value of --http-connections");
  table->Duration("http-ping", &flags->ping, absl::ZeroDuration(),
                  absl::Hours(1),
                  "Interval of comments in silent event streams, for proxies "
                  "that close silent streams; some clients cannot read them; "
                  "0: none");
}

void AddTlsFlags(TlsFiles* files, bool* insecure, FlagTable* table) {
  table->Text("tls-cert", &files->certificate,
              "PEM file of the server's certificate, followed by its chain: "
              "gRPC and HTTP then accept TLS only, a Unix socket never does. "
              "Read again when it changes, like the next three");
  table->Text("tls-key", &files->key,
              "PEM file of the certificate's key, without a passphrase, not "
              "readable for everyone (0640 or less)");
  table->Text("tls-client-ca", &files->client_ca,
              "PEM file of the authorities that sign clients' certificates. "
              "Every client of gRPC and HTTP must then present one");
  table->Text("tls-crl", &files->revoked,
              "PEM file of revocation lists, one for each authority of "
              "--tls-client-ca that has one. A list that is wrong or has "
              "expired is an error at the start");
  table->Bool("insecure", insecure,
              "Let gRPC and HTTP listen beyond loopback without TLS: anyone "
              "on the network path can read and change everything");
}

void AddFormatFlags(std::string* quality, StepRunnerOptions* runner,
                    FlagTable* table) {
  table->Choice("quality", quality, QualityNames(),
                "Number formats of the native step on the CPU: exact "
                "(float32), balanced (--weights int8 --derived f16) or fast "
                "(--weights int8 --products int8 --memory int8 --derived "
                "int8). A setting that is given separately takes precedence");
  table->Choice("weights", &runner->weights, FormatNames(kWeightFormats),
                "Format of the weights; int4, with words and their projections "
                "in int8, on the CPU only");
  table->Choice("memory", &runner->memory, FormatNames(kRowFormats),
                "Format of sessions' memory");
  table->Choice("derived", &runner->derived, FormatNames(kRowFormats),
                "Format of the keys and values derived from that memory");
  table->Choice("products", &runner->products, ProductNames(),
                "Products of rows with int8 or int4 weights, on the CPU: float "
                "(rows as they are) or int8 (rows rounded to 8 bits, exact "
                "sums: two to three times as fast)");
}

void AddEngineFlags(ServerFlags* flags, FlagTable* table) {
  table->Text("device", &flags->runner.device,
              "Where the model runs: auto, cpu, cuda, cuda:N");
  table->Choice("step", &flags->runner.step, {"auto", "native", "torch"},
                "Implementation of a step. native: own kernels (CUDA devices: "
                "if built with TXL_CUDA). torch: LibTorch, any device. auto: "
                "native if it supports the other settings and the self-test at "
                "load passes, else torch. The first two skip the self-test and "
                "are for benchmarks");
  table->Choice("form", &flags->runner.form, {"auto", "projected", "absorbed"},
                "Attention of the native step: projected (keys and values are "
                "kept), absorbed (the memory itself is read: sessions take a "
                "third of the bytes, more arithmetic), auto: the faster one");
  AddFormatFlags(&flags->quality, &flags->runner, table);
  table->Text(
      "vector-target", &flags->runner.vector_target,
      "Instruction set of the CPU's kernels: auto, the best one that "
      "the machine has, or a plainer one by its name (AMX, AVX3_DL, "
      "AVX3, AVX2, NEON, SCALAR). The log's start names the one in use");
  table->Number("threads", &flags->threads, 0, kMaxThreads,
                "Threads of a step on the CPU; 0: one for a small model, else "
                "one per core");
  table->Number("slots", &flags->runner.slots, 0, 1 << 20,
                "Sessions whose memory is on the device at once; 0: as many "
                "as fit into --slot-memory");
  table->Bytes("slot-memory", &flags->runner.slot_bytes, 0, kInt64Max,
               "Bytes for the slots; 0: a share of --memory-limit. On a CUDA "
               "device: with LibTorch's step half of the free device memory (1 "
               "GiB in programs without CUDA kernels), with the native step "
               "all of it except 1 GiB");
  table->Choice("speculate", &flags->speculate, {"auto", "off"},
                "auto: guessed next tokens are fed along with a stream if they "
                "are right often enough, on the CPU's native step; the tokens "
                "are the same to the bit. off: never");
}

void AddQueueFlags(SchedulerOptions* scheduler, FlagTable* table) {
  table->Number("max-queue-calls", &scheduler->max_queued_calls, 1, kInt32Max,
                "Calls that may wait; beyond it QUEUE_FULL");
  table->Duration("queue-limit", &scheduler->queue_limit, absl::Milliseconds(1),
                  absl::Hours(24),
                  "A call that has waited this long ends with QUEUE_FULL");
  table->Duration("slow-reader-limit", &scheduler->slow_reader_limit,
                  absl::Milliseconds(1), absl::Hours(24),
                  "A full stream that the client does not read for this long "
                  "ends with CLIENT_TOO_SLOW");
  table->Duration("longest-turn", &scheduler->longest_turn,
                  absl::Milliseconds(1), absl::Hours(24 * 30),
                  "A turn that takes this long, including its wait, ends with "
                  "DEADLINE_EXCEEDED; its session keeps what was sent");
}

void AddSessionFlags(ServerFlags* flags, FlagTable* table) {
  SessionStoreOptions& sessions = flags->sessions;
  table->Duration("session-ttl", &sessions.default_ttl, sessions.min_ttl,
                  sessions.max_ttl,
                  "Time-to-live of a session after its last use, unless "
                  "CreateSession sets one");
  table->Number("max-sessions", &sessions.max_sessions, 1, kInt64Max,
                "Sessions that may exist; beyond it NO_SESSION_MEMORY. A "
                "sixteenth is reserved for turns without a session. Idle "
                "sessions without a token end first (SESSION_EVICTED)");
  table->Number("max-session-tokens", &sessions.max_session_tokens, 1,
                kInt64Max / 8,
                "Tokens that a session may hold; beyond it OVER_LIMIT");
  table->Bytes("session-memory", &flags->session_memory, 0, kInt64Max,
               "Bytes of host memory for the state of sessions without a slot; "
               "beyond it they keep only their tokens and feed the last ones "
               "again; 0: a share of --memory-limit");
  table->Bytes("replay-memory", &flags->replay_memory, 0, kInt64Max,
               "Bytes of host memory for the answers of turns with a "
               "request_id; beyond it the oldest are dropped; 0: a share of "
               "--memory-limit");
  table->BytesOrAuto(
      "prefix-cache", &flags->prefix_cache, 0, kInt64Max,
      "Bytes of host memory for the state of prompts, so that later prompts of "
      "the same tenant with the same beginning feed only the rest; the answers "
      "are the same to the bit. auto: a share of --memory-limit. 0: every "
      "prompt is fed whole");
  table->Text("export-key-file", &flags->export_key_file,
              "File with a secret of 32 to 4096 bytes, of mode 0640 or less. "
              "Exports that ask for it then contain the session's state, "
              "signed, and servers with the same key and model import it. "
              "Others import only the tokens and feed them again, to the same "
              "bits");
}

void AddStoreFlags(StoreFlags* store, FlagTable* table) {
  table->Text("data-dir", &store->data_dir,
              "Folder for the sessions of one server. The server creates it, "
              "but not its parent; empty: sessions end with the process");
  table->Text("store", &store->store,
              "Redis in which servers keep sessions that they share: "
              "redis://HOST:PORT, one address; not together with --data-dir; "
              "empty: none");
  table->Duration("session-lease", &store->session_lease, absl::Seconds(1),
                  absl::Minutes(1),
                  "Time that a shared session stays with the server that runs "
                  "its turn, after the last sign of that server");
  table->Text("image-dir", &store->image_dir,
              "With --store, folder for state images, the same for all servers "
              "or one for each; empty: in memory alone");
  table->Choice("durability", &store->durability, {"turn", "token"},
                "What is stored before it is acknowledged: turn (the end of a "
                "turn, and every answer that changes a session), token (also "
                "every token before it is sent)");
  table->Duration("journal-interval", &store->journal_interval,
                  absl::ZeroDuration(), absl::Minutes(1),
                  "Time between writes when no call waits for one; 0: 100ms "
                  "with --data-dir, 1s with --store");
  table->Number("journal-lag", &store->journal_lag, 1, kInt32Max,
                "Tokens of a session that may be sent before they are stored; "
                "then its stream waits");
  table->Bytes("store-bytes", &store->store_bytes, 16 << 20, kInt64Max,
               "Bytes of the database; beyond it STORE_FULL. State images may "
               "use half as much again; the oldest are deleted first");
  table->Number("snapshot-tokens", &store->snapshot_tokens, 0, kInt64Max,
                "A session's state is written to the folder when the session "
                "has this many more tokens than at the last write; 0: only "
                "when it leaves the device");
  table->Switch("store-recover", &store->recover,
                "Copy a store whose disk has failed, then serve from the copy");
}

void AddCallFlags(ServerFlags* flags, FlagTable* table) {
  CallLimits& calls = flags->calls;
  table->Number("max-connections", &calls.connections, 1, kInt32Max,
                "Connections at a time, at most the limit of open files less "
                "64; others are closed at once");
  table->Number("max-connections-per-host", &calls.connections_per_host, 0,
                kInt32Max,
                "Connections of one address at a time; 0: no separate limit, "
                "for servers behind a proxy");
  table->Number("max-calls", &calls.calls, 1, kInt32Max,
                "Calls at a time; beyond it OVERLOADED. GetModel, "
                "GetServerStatus and health have their own limit");
  table->Duration("request-timeout", &calls.request_timeout,
                  absl::Milliseconds(100), absl::Hours(1),
                  "A request that has not arrived completely after this time "
                  "ends with DEADLINE_EXCEEDED");
  table->Number("max-prompt-tokens", &flags->limits.prompt_tokens, 1, kInt32Max,
                "Tokens of a prompt; beyond it OVER_LIMIT");
  table->Number("max-tokens", &flags->limits.max_tokens, 1, kInt32Max,
                "Tokens that a turn may generate; beyond it OVER_LIMIT");
}

void AddStepTuning(ServerFlags* flags, FlagTable* table) {
  SchedulerOptions& scheduler = flags->scheduler;
  table->Number("spare-rows", &flags->runner.spare_rows, 8, kMaxRows,
                "Positions of a prompt that one step may feed for a session");
  table->Number("max-rows", &flags->runner.max_rows, 1, kMaxRows,
                "Positions of one step over all sessions");
  table->Number("prompt-rows-per-step", &scheduler.prompt_rows_per_step, 1,
                kMaxRows,
                "Prompt positions of one step over all sessions; more feed "
                "prompts faster, fewer keep other streams even");
  table->Number("max-queue-tokens", &scheduler.max_queued_tokens, 1, kInt64Max,
                "Prompt tokens that may wait; beyond it QUEUE_FULL");
  table->Number("park-events", &scheduler.park_events, 1, kInt32Max,
                "Unsent events at which a stream's session stops stepping");
  table->Real("least-rate", &scheduler.least_rate, 0, 1e6,
              "Lowest rate, in events per second over a minute, at which a "
              "client must read a full stream; a slower one gets "
              "CLIENT_TOO_SLOW; 0: any read suffices");
  table->Duration("min-idle", &scheduler.min_idle, absl::ZeroDuration(),
                  absl::Hours(24),
                  "A session that has been idle for less keeps its slot; new "
                  "work may get NO_SESSION_MEMORY instead");
  table->Duration("stall-limit", &flags->stall_limit, absl::Milliseconds(100),
                  absl::Hours(1),
                  "Health is NOT_SERVING when work waits and no step has ended "
                  "for this long");
  table->Duration("hang-limit", &flags->hang_limit, absl::ZeroDuration(),
                  absl::Hours(24),
                  "The process ends with exit code 4 when work waits and no "
                  "step has ended for this long; 0: never");
  table->Duration("listener-limit", &flags->listener_limit,
                  absl::ZeroDuration(), absl::Hours(24),
                  "The process ends with exit code 4 when it cannot connect to "
                  "its own --listen address for this long (it tries every "
                  "second); 0: never");
}

void AddCallTuning(ServerFlags* flags, FlagTable* table) {
  RequestLimits& limits = flags->limits;
  table->Bytes("max-prompt-bytes", &limits.prompt_bytes, 1, kInt32Max,
               "Bytes of a prompt's text; beyond it OVER_LIMIT");
  table->Number("max-logprobs", &limits.logprobs, 0, kMaxRows,
                "Alternatives for a token; beyond it OVER_LIMIT");
  table->Number("max-alternatives", &limits.alternatives, 1, kMaxRows,
                "Alternatives of a call of ScoreAlternatives; beyond it "
                "OVER_LIMIT");
  table->Bytes("max-message-bytes", &limits.message_bytes, 1024, kInt32Max,
               "Bytes of a client's message");
  table->Bytes("max-import-bytes", &limits.import_bytes, 1024, int64_t{1} << 40,
               "Bytes of a session's file that ImportSession accepts. While "
               "they arrive, up to four times as many are reserved in the part "
               "for requests");
}

}  // namespace

void AddServerFlags(ServerFlags* flags, FlagTable* table) {
  table->Group("Server");
  AddProcessFlags(flags, table);
  table->Group("Access");
  AddAccessFlags(flags, table);
  AddRecordFlags(&flags->records, table);
  table->Group("HTTP");
  AddHttpFlags(&flags->http, table);
  table->Group("Encryption");
  AddTlsFlags(&flags->tls, &flags->insecure, table);
  table->Group("Engine");
  AddEngineFlags(flags, table);
  table->Group("Turns");
  AddQueueFlags(&flags->scheduler, table);
  table->Group("Sessions");
  AddSessionFlags(flags, table);
  table->Group("Store of sessions");
  AddStoreFlags(&flags->store, table);
  table->Group("Calls and connections");
  AddCallFlags(flags, table);
  table->Group("Configuration");
  table->Text("config", &flags->config, "TOML file of settings, at most 1 MiB");
  table->Switch("print-config", &flags->print_config,
                "Print the settings as a file for --config and exit");
  table->Switch("check-config", &flags->check_config,
                "Check the settings, the TLS files, the model directory, the "
                "device, the division of memory and the places of "
                "its other files, and exit");
  table->Group(kTuning);
  AddStepTuning(flags, table);
  AddCallTuning(flags, table);
  table->Constants({"answer-timeout", "connection-age", "connection-idle",
                    "max-logit-bias", "max-parked-turns", "max-stop-text-bytes",
                    "max-stop-texts", "max-stop-tokens",
                    "max-streams-per-connection", "max-tokens-per-message",
                    "max-unread-answer-bytes", "max-unread-bytes",
                    "priority-age", "rate-window", "retry-after",
                    "speculate-tokens", "work-threads"});
}

absl::StatusOr<ParsedFlags> ParseFlags(std::vector<std::string> arguments) {
  ParsedFlags parsed;
  ServerFlags flags;
  FlagTable table(
      "Serves a Transformer-XL model over gRPC.\n"
      "Every flag F is also TXL_F in the environment and a key of the TOML "
      "file of --config:\nflag > environment > file > default. Rare settings "
      "are keys of the file's table [tuning] alone.");
  AddServerFlags(&flags, &table);
  const absl::Status status = table.Parse(std::move(arguments));
  if (absl::IsCancelled(status)) {
    parsed.print = std::string(status.message());
    return parsed;
  }
  TXL_RETURN_IF_ERROR(status);
  if (!flags.config.empty()) TXL_RETURN_IF_ERROR(table.ApplyFile(flags.config));
  ApplyQuality(
      flags.quality,
      [&](absl::string_view name) { return table.Has(std::string(name)); },
      flags.runner);
  if (flags.print_config) {
    parsed.print = table.ToToml();
    return parsed;
  }
  TXL_RETURN_IF_ERROR(table.CheckRequired("model"));
  TXL_RETURN_IF_ERROR(CheckStoreFlags(flags.store));
  for (const char* promise : {"durability", "store-recover"}) {
    if (table.Has(promise) && !flags.store.kept()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--", promise,
          " goes with --data-dir or --store: sessions are not kept"));
    }
  }
  const std::string admin =
      AdminAddress(flags.admin_listen, flags.store.data_dir);
  TXL_RETURN_IF_ERROR(CheckExposure(
      {flags.listen, flags.http.listen, flags.tls, flags.insecure, admin}));
  TXL_RETURN_IF_ERROR(
      CheckAddressesDiffer({{"--listen", flags.listen},
                            {"--http-listen", flags.http.listen},
                            {"--metrics-listen", flags.metrics_listen},
                            {"--admin-listen", admin}}));
  parsed.flags = std::move(flags);
  return parsed;
}

}  // namespace txl
