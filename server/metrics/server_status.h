#pragma once

// What a server as a whole is and does at one moment: the answer of
// GetServerStatus and of a scrape of its metrics.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/memory_guard.h"
#include "server/base/self_test_report.h"
#include "server/metrics/metrics.h"

namespace txl {

enum class ServerPhase {
  kStarting,  // no step has run yet
  kReady,     // serving
  kDraining,  // shutting down; never leaves this
};

// created + loaded == ended + stored_away + idle + busy
struct SessionCounts {
  int64_t idle = 0;
  int64_t busy = 0;
  int64_t created = 0;
  int64_t ended = 0;
  int64_t loaded = 0;             // came back from the store into memory
  int64_t stored_away = 0;        // left memory for it
  int64_t image_bytes = 0;        // of state images on the host
  int64_t turn_record_bytes = 0;  // of the records of turns with a request_id
  int64_t id_bytes = 0;           // of session records and their token ids
};

// Work that is done off gRPC's threads.
struct WorkCounts {
  int64_t queued = 0;   // now
  int64_t running = 0;  // now
  int64_t done = 0;
  int64_t refused = 0;  // the queue was full, or the wait too long
};

struct ConnectionCounts {
  int64_t open = 0;   // now
  int64_t limit = 0;  // of open
  int64_t refused = 0;
};

// Calls of the API's methods.
struct CallCounts {
  int64_t open = 0;       // now
  int64_t reading = 0;    // of these: requests that have not come whole
  int64_t answering = 0;  // answers, not streams, that clients have not read
  int64_t refused = 0;    // for want of room: calls, bytes, or memory is short
};

// Memory by the division of the start, and what is used of it.
struct MemoryUse {
  MemoryDivision division;     // all 0: not divided
  int64_t resident_bytes = 0;  // 0: not sampled
  bool shedding = false;
  int64_t request_bytes = 0;
  int64_t requests_refused = 0;  // by the requests' part
  int64_t stream_bytes = 0;
  int64_t streams_refused = 0;  // by the streams' part
};

// What sessions survive the process.
struct StoreUse {
  std::string durability;  // "turn" or "token"; ", up to 2 s" where late
  std::string state;       // "serving", "full", "failed" or "unreachable"
  int64_t sessions = 0;
  int64_t database_bytes = 0;
  int64_t image_bytes = 0;
  int64_t limit_bytes = 0;     // of the database; 0: none
  int64_t tokens_waiting = 0;  // taken on, not on stable storage
  int64_t tokens_written = 0;
  int64_t commits = 0;
  Histogram commit_seconds{kCommitBounds};  // of those commits
  // Counters of a store that servers share.
  int64_t acquired = 0;     // sessions that came to be this server's
  int64_t taken_over = 0;   // of them from a server that still had them
  int64_t fenced = 0;       // copies that another server had changed
  int64_t busy = 0;         // refused: another server has the session
  int64_t tokens_lost = 0;  // confirmed once, and not there any more
};

// The time in which a certificate is valid.
struct Validity {
  absl::Time begin;
  absl::Time end;
};

struct ServerStatus {
  ServerPhase phase = ServerPhase::kStarting;
  absl::Duration uptime;
  absl::Duration stall;  // age of the last step while work waits, else 0
  SessionCounts sessions;
  MemoryUse memory;
  int64_t log_lines_dropped = 0;
  int64_t audit_lines_lost = 0;  // of --audit-log
  int64_t span_lines_lost = 0;   // of --trace-file
  WorkCounts work;
  CallCounts calls;
  ConnectionCounts connections;
  std::optional<StoreUse> store;  // absent: sessions end with the process
  SelfTestReport self_test;       // at load
  // When the server's own certificate is valid; absent: it has none.
  std::optional<Validity> certificate;
  Snapshot snapshot;
};

// What the operating system says about this process.

// What /proc/PID/stat says; times in clock ticks.
struct ProcStat {
  int64_t cpu_ticks = 0;  // user and system
  int64_t threads = 0;
  int64_t start_ticks = 0;  // after the start of the machine
  int64_t virtual_bytes = 0;
  int64_t resident_pages = 0;
};
// Absent: not such a line. The program's name in it may hold anything.
std::optional<ProcStat> ParseProcStat(absl::string_view line);
// "btime" of /proc/stat: start of the machine, seconds since 1970.
std::optional<int64_t> ParseBootTime(absl::string_view text);

// What cannot be read is 0.
struct ProcessStatus {
  double cpu_seconds = 0;
  double start_time_seconds = 0;  // since 1970
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  int64_t threads = 0;
  int64_t open_fds = 0;
  int64_t max_fds = 0;
};
ProcessStatus ReadProcessStatus();

}  // namespace txl
