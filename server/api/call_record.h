#pragma once

// What is said of a call when it has ended: a line in the log, one in the audit
// log, a span. Neither text nor tokens nor session ids are in any of them
// (anyone who knows a session's id may read the session).

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/api/limits.h"
#include "server/base/clock.h"
#include "server/base/line_file.h"
#include "server/metrics/metrics.h"
#include "server/session/session_name.h"
#include "server/session/turn_record.h"
#include "server/trace/trace_context.h"

namespace txl {

// How long a call's turn waited and ran. Pure.

// Borders of a turn, on Clock::Monotonic, as far as it has come.
struct TurnTimes {
  std::optional<absl::Duration> queued;   // asked for; absent: there is none
  std::optional<absl::Duration> started;  // has left the queue
  std::optional<absl::Duration> fed;      // its input; its first token is there
  std::optional<absl::Duration> ended;

  // Zero where it has not come so far.
  absl::Duration Queue() const;
  absl::Duration Prefill() const;
  absl::Duration Decode() const;
  absl::Duration Run() const { return Prefill() + Decode(); }
};

// The turn has ended well, with these times. One that was never started is an
// earlier one that is told again: nothing waited and nothing ran.
void EndWell(const TurnTiming& timing, TurnTimes* times);

// Lines in a second of what clients can cause at will.
inline constexpr int64_t kRefusalLines = 50;

// Where lines of calls go, and how many. Outlives calls.
struct CallLines {
  LineFile* audit = nullptr;  // null: none
  LineFile* spans = nullptr;  // null: none
  // Limits of lines in the log of refused calls, and of lines in the files of
  // calls by unknown callers. The files have all calls by known callers.
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
  std::string tenant;   // the caller's; empty: the caller is unknown
  std::string key;      // the name of the caller's; empty: none was asked for
  std::string session;  // HashOf the one it names; empty: none
  std::string request_id;  // the client's, or HTTP's; empty: none
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;     // of the prompt, where the turn ended well
  int64_t generated_tokens = 0;  // handed to the stream
  TurnTimes times;
};

CallRecord StartRecord(const char* method, Clock* clock, Metrics* metrics);
// Id of a session in the log: 16 hex digits of the SHA-256 of its name's text.
// Empty without a session.
std::string HashOf(const SessionName& session);
// Says and counts the call. Errors of the server itself (INTERNAL, UNKNOWN,
// DATA_LOSS) are ERROR lines with their full text, all others INFO.
// Where lines were left out (CallLines) the next one says how many.
void EndRecord(const CallRecord& record, const absl::Status& status);
// Counts the call without a line.
void CountCall(const CallRecord& record, const absl::Status& status);

}  // namespace txl
