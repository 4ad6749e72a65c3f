#include "server/api/call_record.h"

#include "server/base/error.h"
#include "server/base/log.h"

namespace txl {
namespace {

bool IsServerError(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal ||
         code == absl::StatusCode::kUnknown ||
         code == absl::StatusCode::kDataLoss;
}

}  // namespace

CallRecord StartRecord(const char* method, Clock* clock, Metrics* metrics) {
  CallRecord record;
  record.method = method;
  record.clock = clock;
  record.metrics = metrics;
  record.start = clock->Monotonic();
  return record;
}

void CountCall(const CallRecord& record, const absl::Status& status) {
  record.metrics->Update([&](Snapshot& s) {
    ++s.calls[{record.method, status.code()}];
  });
}

void EndRecord(const CallRecord& record, const absl::Status& status) {
  CountCall(record, status);
  int64_t left_out = 0;
  if (!status.ok() && !IsServerError(status.code()) &&
      record.refusals != nullptr) {
    const auto line = record.refusals->Take(record.clock->Monotonic());
    if (!line.has_value()) return;
    left_out = *line;
  }
  const absl::Duration took = record.clock->Monotonic() - record.start;
  LogFields fields = {
      {"method", record.method},
      {"status", absl::StatusCodeToString(status.code())},
      {"reason", status.ok() ? "" : ReasonOf(status)},
      {"tenant", record.tenant},
      {"key", record.key},
      {"named_session", record.named_session},
      {"prompt_tokens", record.prompt_tokens},
      {"generated_tokens", record.generated_tokens},
      {"seconds", absl::ToDoubleSeconds(took)},
  };
  if (left_out > 0) fields.push_back({"lines_left_out", left_out});
  if (IsServerError(status.code())) {
    fields.push_back({"error", status.message()});
    Log(LogSeverity::kError, "call", fields);
    return;
  }
  Log(LogSeverity::kInfo, "call", fields);
}

}  // namespace txl
