#include "server/rpc/call_record.h"

#include "server/base/log.h"
#include "server/rpc/grpc_status.h"

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

void EndRecord(const CallRecord& record, const absl::Status& status) {
  record.metrics->Update([&](Snapshot& s) {
    ++s.calls[{record.method, status.code()}];
  });
  const absl::Duration took = record.clock->Monotonic() - record.start;
  LogFields fields = {
      {"method", record.method},
      {"status", absl::StatusCodeToString(status.code())},
      {"reason", status.ok() ? "" : ReasonOf(status)},
      {"named_session", record.named_session},
      {"prompt_tokens", record.prompt_tokens},
      {"generated_tokens", record.generated_tokens},
      {"seconds", absl::ToDoubleSeconds(took)},
  };
  if (IsServerError(status.code())) {
    fields.push_back({"error", status.message()});
    Log(LogSeverity::kError, "call", fields);
    return;
  }
  Log(LogSeverity::kInfo, "call", fields);
}

}  // namespace txl
