#pragma once

// The access log: one line for each finished call. Neither text nor tokens nor
// session ids are in it (whoever knows a session's id may read it).

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/base/clock.h"

namespace txl {

struct CallRecord {
  const char* method = "";  // "txl.v1.GenerationService/Generate"
  Clock* clock = nullptr;
  absl::Duration start;        // Clock::Monotonic at arrival
  bool named_session = false;  // else temporary or none
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;  // handed to the stream
};

CallRecord StartRecord(const char* method, Clock* clock);
// Errors of the server itself (INTERNAL, UNKNOWN, DATA_LOSS) are ERROR lines
// with their full text, all others INFO.
void LogCall(const CallRecord& record, const absl::Status& status);

}  // namespace txl
