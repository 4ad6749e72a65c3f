#pragma once

// What is said of a call when it has ended: a line in the log, one in the audit
// log, a span. Neither text nor tokens nor session ids are in any of them
// (whoever knows a session's id may read it).

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/api/line_limit.h"
#include "server/api/turn_times.h"
#include "server/base/clock.h"
#include "server/base/line_file.h"
#include "server/metrics/metrics.h"
#include "server/session/session_name.h"
#include "server/trace/trace_context.h"

namespace txl {

// Lines in a second of what clients can cause at will.
inline constexpr int64_t kRefusalLines = 50;

// Where lines of calls go, and how many. Outlives calls.
struct CallLines {
  LineFile* audit = nullptr;  // null: none
  LineFile* spans = nullptr;  // null: none
  // In the log, of calls that were refused; in the files, of calls of nobody
  // who is known. Calls of others are in the files in full.
  LineLimit refusals{kRefusalLines};
  LineLimit strangers{kRefusalLines};
};

struct CallRecord {
  const char* method = "";  // "txl.v1.GenerationService/Generate", a literal
  Clock* clock = nullptr;
  Metrics* metrics = nullptr;
  CallLines* lines = nullptr;  // null: the log alone, without a limit
  absl::Duration start;        // Clock::Monotonic at arrival
  std::string peer;            // "ipv4:127.0.0.1:4711"
  TraceContext trace;
  std::string tenant;   // whose call it is; empty: nobody is known
  std::string key;      // the name of the caller's; empty: none was asked for
  std::string session;  // HashOf the one it names; empty: none
  std::string request_id;  // the client's, or HTTP's; empty: none
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;  // handed to the stream
  TurnTimes times;
};

CallRecord StartRecord(const char* method, Clock* clock, Metrics* metrics);
// By which lines tell sessions apart: 16 hex digits of the SHA-256 of the
// name's text. Empty of no session.
std::string HashOf(const SessionName& session);
// Says and counts the call. Errors of the server itself (INTERNAL, UNKNOWN,
// DATA_LOSS) are ERROR lines with their full text, all others INFO.
// Where lines were left out (CallLines) the next one says how many.
void EndRecord(const CallRecord& record, const absl::Status& status);
// Counts the call without a line.
void CountCall(const CallRecord& record, const absl::Status& status);

}  // namespace txl
