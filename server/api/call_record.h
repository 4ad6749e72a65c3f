#pragma once

// The access log and the count of calls: once for each finished call. Neither
// text nor tokens nor session ids are in it (whoever knows a session's id may
// read it).

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/api/line_limit.h"
#include "server/base/clock.h"
#include "server/metrics/metrics.h"

namespace txl {

struct CallRecord {
  const char* method = "";  // "txl.v1.GenerationService/Generate", a literal
  Clock* clock = nullptr;
  Metrics* metrics = nullptr;
  LineLimit* refusals = nullptr;  // null: no limit
  absl::Duration start;           // Clock::Monotonic at arrival
  std::string tenant;             // whose call it is
  std::string key;  // the name of the caller's key; empty: none was asked for
  bool named_session = false;  // else temporary or none
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;  // handed to the stream
};

CallRecord StartRecord(const char* method, Clock* clock, Metrics* metrics);
// Logs and counts the call. Errors of the server itself (INTERNAL, UNKNOWN,
// DATA_LOSS) are ERROR lines with their full text, all others INFO.
// Lines of other errors, which clients can cause at will, are limited; the next
// one says how many were left out.
void EndRecord(const CallRecord& record, const absl::Status& status);
// Counts the call without a line.
void CountCall(const CallRecord& record, const absl::Status& status);

}  // namespace txl
