#include "server/flags.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "program/flag_checks.h"
#include "server/base/log.h"
#include "server/exposure.h"
#include "server/flag_table.h"
#include "server/format_flags.h"
#include "server/http/metrics_endpoint.h"
#include "server/listen_address.h"
#include "server/speculation_flags.h"
#include "server/tls_flags.h"

namespace txl {
namespace {
constexpr absl::Duration kLongestConnection = absl::Hours(24 * 20);
constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();
constexpr int64_t kMaxRows = 1 << 16;

// Octal permissions, or nothing; else what is wrong.
std::string CheckMode(const std::string& mode) {
  const bool octal = mode.size() <= 4 &&
                     mode.find_first_not_of("01234567") == std::string::npos &&
                     (mode.size() < 4 || mode[0] == '0');
  return octal ? ""
               : absl::StrCat("\"", mode, "\" is no mode in octal like 0660");
}

// HOST:PORT, or nothing; else what is wrong.
std::string CheckOptionalAddress(const std::string& address) {
  return address.empty() ? "" : CheckHttpAddress(address);
}

void AddServerFlags(ServerFlags* flags, FlagTable* table) {
  table->Text("model", &flags->model,
              "Model directory, or the name of a model that is installed with "
              "the program, like shakespeare; required");
  table
      ->Text("listen", &flags->listen,
             "Address of the gRPC API: HOST:PORT (port 0: any free one) or "
             "unix:PATH. Beyond loopback it needs --tls-cert or --insecure")
      ->check(CLI::Validator(CheckListen, ""));
  table
      ->Text("socket-mode", &flags->socket_mode,
             "Who may connect to unix:PATH, in octal digits, like 0660: the "
             "owner, its group; empty: what the umask leaves")
      ->check(CLI::Validator(CheckMode, ""));
  table
      ->Text("metrics-listen", &flags->metrics_listen,
             "Address of Prometheus metrics, http://HOST:PORT/metrics (port "
             "0: any free one); empty: none. It has no access control of its "
             "own")
      ->check(CLI::Validator(CheckOptionalAddress, ""));
  table->Text("export-key-file", &flags->export_key_file,
              "File of a secret key, 32 bytes or more, that signs the segment "
              "memory in exported sessions: servers of one key take it from "
              "each other; empty: it is left out");
  table->Text("tenants", &flags->tenants,
              "TOML file of tenants, their weights and quotas; read again when "
              "it changes and on SIGHUP; empty: everybody is one tenant");
  table->Choice("log-level", &flags->log_level,
                {"debug", "info", "warning", "error"}, "Least severe log line");
  table->Choice("log-format", &flags->log_format, {"json", "text"},
                "Log lines for programs or for people");
  table->Bytes("memory-limit", &flags->memory_limit, 0, kInt64Max,
               "Bytes of host memory that the process may take, divided once "
               "at start; 0: what the machine or a control group has left, "
               "but a sixteenth");
  table->Duration("drain-timeout", &flags->drain_timeout, absl::ZeroDuration(),
                  absl::Hours(1), "Time that running turns get after SIGTERM");
  table->Duration("stall-limit", &flags->stall_limit, absl::Milliseconds(100),
                  absl::Hours(1),
                  "Health is NOT_SERVING when work waits and no step ended "
                  "for this long");
  table->Duration("hang-limit", &flags->hang_limit, absl::ZeroDuration(),
                  absl::Hours(24),
                  "The process ends with exit code 4, to be started again, "
                  "when work waits and no step ended for this long; 0: never");
  table->Duration("listener-limit", &flags->listener_limit,
                  absl::ZeroDuration(), absl::Hours(24),
                  "Likewise when its own connections to --listen, one a "
                  "second, are not answered for this long; 0: never");
}

void AddAccessFlags(ServerFlags* flags, FlagTable* table) {
  table->Text("keys", &flags->keys,
              "File of the keys that callers need (txl-server keys --help); it "
              "is read again when it changes; empty: everybody may do "
              "everything");
  table
      ->Text("admin-listen", &flags->admin_listen,
             "Address of administration (txl admin): unix:PATH, for the "
             "server's user alone, or HOST:PORT of loopback; off: none; auto: "
             "the socket admin.sock in --data-dir, without one none")
      ->check(CLI::Validator(CheckAdminListen, ""));
}

void AddHttpFlags(HttpFlags* flags, FlagTable* table) {
  table
      ->Text("http-listen", &flags->listen,
             "Address of the HTTP API and its page: HOST:PORT (port 0: any "
             "free one); empty: none. Beyond loopback it needs --tls-cert or "
             "--insecure")
      ->check(CLI::Validator(CheckOptionalAddress, ""));
  table->Text("http-hosts", &flags->hosts,
              "Host names by which HTTP is asked for beside loopback's, with "
              "commas between them: what a proxy before it passes on");
  table->Text("http-origins", &flags->origins,
              "Origins whose pages may use it, like https://chat.example, "
              "with commas between them");
  table->Number("http-connections", &flags->connections, 1, 1 << 16,
                "Connections of HTTP at a time; over it 429");
  table->Number("http-connections-per-host", &flags->connections_per_host, 1,
                1 << 16,
                "Those of one address: a proxy before the server needs more");
  table->Duration("http-ping", &flags->ping, absl::ZeroDuration(),
                  absl::Hours(1),
                  "Interval of comments in silent streams, for proxies that "
                  "close them; some clients stumble over it; 0: none");
}

void AddEngineFlags(ServerFlags* flags, FlagTable* table) {
  table->Text("device", &flags->runner.device,
              "Where the model runs: auto, cpu, cuda, cuda:N");
  table->Choice(
      "step", &flags->runner.step, {"auto", "native", "torch"},
      "Implementation of a step: native (own kernels; on CUDA devices "
      "in programs built with them), torch (LibTorch, any device), "
      "auto: native where a self-test at load passes, else torch");
  table->Choice("form", &flags->runner.form, {"auto", "projected", "absorbed"},
                "Attention of the native step: projected (keys and values are "
                "kept), absorbed (the memory itself is read: sessions take a "
                "third of the bytes, more arithmetic), auto: the faster one");
  AddFormatFlags(&flags->quality, &flags->runner, table);
  table->Number("threads", &flags->threads, 0, 1024,
                "Threads of a step on the CPU; 0: one for a small model, else "
                "as many as cores");
  table->Number("slots", &flags->runner.slots, 0, 1 << 20,
                "Sessions whose memory is on the device at once; 0: as many "
                "as fit --slot-memory");
  table->Bytes(
      "slot-memory", &flags->runner.slot_bytes, 0, kInt64Max,
      "Bytes for sessions' memory on the device; 0: by division of "
      "--memory-limit or, with LibTorch's step on a device, half of what that "
      "has left; with the native CUDA step all of that but 1 GiB");
  table->Number("spare-rows", &flags->runner.spare_rows, 8, kMaxRows,
                "Positions of a prompt that one step may feed for a session");
  table->Number("max-rows", &flags->runner.max_rows, 1, kMaxRows,
                "Positions of one step over all sessions");
  table->Number("prompt-rows-per-step", &flags->scheduler.prompt_rows_per_step,
                1, kMaxRows,
                "Prompt positions of one step over all sessions: more feed "
                "prompts faster, fewer keep other streams even");
  AddGuessFlags(&flags->speculate, &flags->scheduler.speculate_tokens,
                &flags->draft, table);
}

void AddQueueFlags(ServerFlags* flags, FlagTable* table) {
  SchedulerOptions& scheduler = flags->scheduler;
  table->Number("max-queue-calls", &scheduler.max_queued_calls, 1, kInt32Max,
                "Calls that may wait; over it QUEUE_FULL");
  table->Number("max-queue-tokens", &scheduler.max_queued_tokens, 1, kInt64Max,
                "Prompt tokens that may wait; over it QUEUE_FULL");
  table->Number("park-events", &scheduler.park_events, 1, kInt32Max,
                "Unsent events at which a stream's session stops stepping");
  table->Duration("slow-reader-limit", &scheduler.slow_reader_limit,
                  absl::Milliseconds(1), absl::Hours(24),
                  "A stream that is not read for this long ends with "
                  "CLIENT_TOO_SLOW");
  table->Real("least-rate", &scheduler.least_rate, 0, 1e6,
              "Events per second that the reader of a full stream has to "
              "take, over --rate-window, or it ends with CLIENT_TOO_SLOW; 0: "
              "any");
  table->Duration("rate-window", &scheduler.rate_window, absl::Milliseconds(1),
                  absl::Hours(24), "Time over which --least-rate counts");
  table->Number("max-parked-turns", &scheduler.max_parked_turns, 0, kInt32Max,
                "Turns that wait for their readers without a slot, which they "
                "gave up for others; one more ends with CLIENT_TOO_SLOW");
  table->Duration("queue-limit", &scheduler.queue_limit, absl::Milliseconds(1),
                  absl::Hours(24),
                  "A call that waits for this long ends with QUEUE_FULL");
  table->Duration("priority-age", &scheduler.priority_age, absl::ZeroDuration(),
                  absl::Hours(1),
                  "What one step of a turn's priority is worth in waiting");
  table->Duration("longest-turn", &scheduler.longest_turn,
                  absl::Milliseconds(1), absl::Hours(24 * 30),
                  "A turn that takes this long, its wait included, ends with "
                  "DEADLINE_EXCEEDED");
  table->Duration("min-idle", &scheduler.min_idle, absl::ZeroDuration(),
                  absl::Hours(24),
                  "A session idle for less keeps its memory on the device; "
                  "new work may get NO_SESSION_MEMORY instead");
  table->Duration("retry-after", &scheduler.retry_after, absl::Milliseconds(1),
                  absl::Hours(1), "Delay that refused clients are told");
}

void AddSessionFlags(ServerFlags* flags, FlagTable* table) {
  SessionStoreOptions& sessions = flags->sessions;
  table->Duration("session-ttl", &sessions.default_ttl, sessions.min_ttl,
                  sessions.max_ttl,
                  "Life of a session after its last use, unless "
                  "CreateSession says");
  table->Number("max-sessions", &sessions.max_sessions, 1, kInt64Max,
                "Sessions that may exist; over it NO_SESSION_MEMORY");
  table->Number("max-session-tokens", &sessions.max_session_tokens, 1,
                kInt64Max / 8, "Tokens that a session may hold");
  table->Bytes("session-memory", &flags->session_memory, 0, kInt64Max,
               "Bytes of host memory for sessions that are not on the device; "
               "0: by division of --memory-limit");
  table->Bytes("replay-memory", &flags->replay_memory, 0, kInt64Max,
               "Bytes of host memory for the answers of turns with a "
               "request_id; over it the oldest are forgotten; 0: by division "
               "of --memory-limit");
}

void AddStoreFlags(ServerFlags* flags, FlagTable* table) {
  StoreFlags& store = flags->store;
  table->Text("data-dir", &store.data_dir,
              "Folder in which sessions are kept, so that they survive the "
              "process; made where it is missing; empty: they end with it");
  table->Text("store", &store.store,
              "Redis in which servers share sessions, not with --data-dir: "
              "redis://HOST:PORT, several with commas between; empty: none");
  table->Duration("session-lease", &store.session_lease, absl::Seconds(1),
                  absl::Minutes(1),
                  "A shared session stays with the server that runs its turn "
                  "for so long after the last sign of it");
  table->Text("image-dir", &store.image_dir,
              "With --store: folder for state images, the same for all servers "
              "or one for each; empty: in memory alone");
  table->Choice("durability", &store.durability, {"turn", "token"},
                "What is on the disk when: turn (the end of a turn and every "
                "answer that changes a session), token (every token before it "
                "is sent, too)");
  table->Duration("journal-interval", &store.journal_interval,
                  absl::ZeroDuration(), absl::Minutes(1),
                  "Time between writes where nobody waits for one; 0: 100ms "
                  "with --data-dir, 1s with --store");
  table->Number("journal-lag", &store.journal_lag, 1, kInt32Max,
                "Tokens of a session that may be out and not on the disk; "
                "then its stream waits");
  table->Bytes("store-bytes", &store.store_bytes, 16 << 20, kInt64Max,
               "Bytes of the database, over it STORE_FULL; state images may "
               "take half as many more, the oldest go first");
  table->Number("snapshot-tokens", &store.snapshot_tokens, 0, kInt64Max,
                "A session's memory on the device is written to the folder "
                "when it has so many tokens more than the last time; 0: only "
                "when it leaves the device");
  table->Switch("store-recover", &store.recover,
                "Copy a store whose disk has failed, then serve from the copy");
}

void AddCallFlags(ServerFlags* flags, FlagTable* table) {
  CallLimits& calls = flags->calls;
  table->Number("max-connections", &calls.connections, 1, kInt32Max,
                "Connections at a time, fewer where the process may not open "
                "as many files; others are closed at once");
  table->Number("max-connections-per-host", &calls.connections_per_host, 0,
                kInt32Max, "Those of one address; 0: no limit of their own");
  table->Number("max-streams-per-connection", &calls.streams_per_connection, 1,
                kInt32Max, "Calls at a time of one connection; others wait");
  table->Number("max-calls", &calls.calls, 1, kInt32Max,
                "Calls at a time; over it OVERLOADED");
  table->Bytes("max-unread-bytes", &calls.unread_bytes, 0, kInt64Max,
               "Bytes of requests that are being read, each counted as "
               "--max-message-bytes; others wait, and the slowest reader gets "
               "OVERLOADED");
  table->Bytes("max-unread-answer-bytes", &calls.unread_answer_bytes, 1 << 20,
               kInt64Max,
               "Bytes of answers that are no streams and that nobody has read; "
               "for one more the oldest is cut off");
  table->Duration("request-timeout", &calls.request_timeout,
                  absl::Milliseconds(100), absl::Hours(1),
                  "Time in which a request has to arrive whole");
  table->Duration("answer-timeout", &calls.answer_timeout,
                  absl::Milliseconds(100), absl::Hours(1),
                  "Time in which an answer that is no stream has to be read");
  table->Duration("connection-idle", &calls.connection_idle, absl::Seconds(1),
                  kLongestConnection, "A connection without a call is closed");
  table->Duration("connection-age", &calls.connection_age, absl::Seconds(1),
                  kLongestConnection,
                  "A connection takes no new calls; those that run go on");
  table->Number("work-threads", &flags->work_threads, 0, 1024,
                "Threads that read large texts and build large answers; 0: "
                "one for two cores");
}

void AddLimitFlags(ServerFlags* flags, FlagTable* table) {
  RequestLimits& limits = flags->limits;
  table->Number("max-prompt-tokens", &limits.prompt_tokens, 1, kInt32Max,
                "Tokens of a prompt");
  table->Bytes("max-prompt-bytes", &limits.prompt_bytes, 1, kInt32Max,
               "Bytes of a prompt's text");
  table->Number("max-tokens", &limits.max_tokens, 1, kInt32Max,
                "Tokens that a turn may generate");
  table->Number("max-stop-texts", &limits.stop_texts, 0, kMaxRows,
                "Stop texts of a turn");
  table->Bytes("max-stop-text-bytes", &limits.stop_text_bytes, 1, 1 << 20,
               "Bytes of a stop text");
  table->Number("max-stop-tokens", &limits.stop_tokens, 0, kMaxRows,
                "Stop token ids of a turn");
  table->Number("max-logprobs", &limits.logprobs, 0, kMaxRows,
                "Alternatives reported for a token");
  table->Number("max-logit-bias", &limits.logit_bias, 0, 1024,
                "Entries of logit_bias");
  table->Number("max-tokens-per-message", &limits.tokens_per_message, 1,
                kMaxRows, "Tokens of one message of a stream");
  table->Number("max-alternatives", &limits.alternatives, 1, kMaxRows,
                "Alternatives of a call of ScoreAlternatives");
  table->Bytes("max-message-bytes", &limits.message_bytes, 1024, kInt32Max,
               "Bytes of a message from a client");
  table->Bytes("max-import-bytes", &limits.import_bytes, 1024, int64_t{1} << 40,
               "Bytes of a session's file that is imported");
}

}  // namespace

absl::StatusOr<ParsedFlags> ParseFlags(std::vector<std::string> arguments) {
  ParsedFlags parsed;
  ServerFlags flags;
  std::string config;
  bool print_config = false;
  FlagTable table(
      "Serves a Transformer-XL model over gRPC.\n"
      "Every flag F is also TXL_F in the environment and a key of the TOML "
      "file of --config:\nflag > environment > file > default.");
  table.Group("Server");
  AddServerFlags(&flags, &table);
  table.Group("Access");
  AddAccessFlags(&flags, &table);
  AddRecordFlags(&flags.records, &table);
  table.Group("HTTP");
  AddHttpFlags(&flags.http, &table);
  table.Group("Encryption");
  AddTlsFlags(&flags.tls, &flags.insecure, &table);
  table.Group("Engine");
  AddEngineFlags(&flags, &table);
  table.Group("Turns");
  AddQueueFlags(&flags, &table);
  table.Group("Sessions");
  AddSessionFlags(&flags, &table);
  table.Group("Store of sessions");
  AddStoreFlags(&flags, &table);
  table.Group("Calls and connections");
  AddCallFlags(&flags, &table);
  table.Group("Limits of requests");
  AddLimitFlags(&flags, &table);
  table.Group("Configuration");
  table.Text("config", &config, "TOML file with values for flags");
  table.Switch("print-config", &print_config,
               "Print the values as a file for --config and exit");
  table.Switch("check-config", &flags.check_config,
               "Check flags and model directory and exit");

  const absl::Status status = table.Parse(std::move(arguments));
  if (absl::IsCancelled(status)) {
    parsed.print = std::string(status.message());
    return parsed;
  }
  TXL_RETURN_IF_ERROR(status);
  if (!config.empty()) TXL_RETURN_IF_ERROR(table.ApplyFile(config));
  ApplyQuality(
      flags.quality,
      [&](absl::string_view name) { return table.Has(std::string(name)); },
      flags.runner);
  if (print_config) {
    parsed.print = table.ToToml();
    return parsed;
  }
  TXL_RETURN_IF_ERROR(table.CheckRequired({"model"}));
  TXL_RETURN_IF_ERROR(CheckStoreFlags(flags.store));
  TXL_RETURN_IF_ERROR(
      CheckExposure({flags.listen, flags.http.listen, flags.tls, flags.insecure,
                     AdminAddress(flags.admin_listen, flags.store.data_dir)}));
  parsed.flags = std::move(flags);
  return parsed;
}

}  // namespace txl
