#include "server/api/call_record.h"

#include <optional>
#include <vector>

#include "absl/strings/escaping.h"
#include "server/base/digest.h"
#include "server/base/error.h"
#include "server/base/log.h"
#include "server/trace/trace_context.h"

namespace txl {
namespace {

// Bytes of a session's digest that are shown.
constexpr size_t kHashBytes = 8;

bool IsServerError(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal ||
         code == absl::StatusCode::kUnknown ||
         code == absl::StatusCode::kDataLoss;
}

std::string ReasonFor(const absl::Status& status) {
  return status.ok() ? "" : ReasonOf(status);
}

// What line and span have in common.
LogFields FieldsOf(const CallRecord& record, const absl::Status& status) {
  return {{"method", record.method},
          {"status", absl::StatusCodeToString(status.code())},
          {"reason", ReasonFor(status)},
          {"tenant", record.tenant},
          {"key", record.key},
          {"peer", record.peer},
          {"named_session", !record.session.empty()},
          {"session", record.session},
          {"request_id", record.request_id},
          {"prompt_tokens", record.prompt_tokens},
          {"cached_tokens", record.cached_tokens},
          {"generated_tokens", record.generated_tokens}};
}

LogFields LineOf(const CallRecord& record, const absl::Status& status,
                 absl::Duration now) {
  LogFields fields = FieldsOf(record, status);
  const TurnTimes& times = record.times;
  fields.push_back({"trace_id", record.trace.trace_id});
  fields.push_back({"queue_seconds", absl::ToDoubleSeconds(times.Queue())});
  fields.push_back({"run_seconds", absl::ToDoubleSeconds(times.Run())});
  fields.push_back({"seconds", absl::ToDoubleSeconds(now - record.start)});
  if (IsServerError(status.code())) {
    fields.push_back({"error", status.message()});
  }
  return fields;
}

LogFields WithLeftOut(LogFields fields, int64_t lines) {
  if (lines > 0) fields.push_back({"lines_left_out", lines});
  return fields;
}

// The call's span, and below it those of its turn.
std::vector<Span> SpansOf(const CallRecord& record, const absl::Status& status,
                          absl::Duration now) {
  const absl::Time wall = record.clock->Now();
  const auto at = [&](absl::Duration when) { return wall - (now - when); };
  Span call;
  call.trace_id = record.trace.trace_id;
  call.span_id = record.trace.span_id;
  call.parent_id = record.trace.parent_id;
  call.name = record.method;
  call.of_server = true;
  call.start = at(record.start);
  call.end = wall;
  call.attributes = FieldsOf(record, status);
  call.ok = status.ok();
  call.error = ReasonFor(status);
  std::vector<Span> spans = {call};
  const auto add = [&](const char* name, std::optional<absl::Duration> from,
                       absl::Duration took) {
    if (!from.has_value()) return;
    Span part;
    part.trace_id = call.trace_id;
    part.span_id = NewSpanId();
    part.parent_id = call.span_id;
    part.name = name;
    part.start = at(*from);
    part.end = part.start + took;
    spans.push_back(std::move(part));
  };
  add("queue", record.times.queued, record.times.Queue());
  add("prefill", record.times.started, record.times.Prefill());
  add("decode", record.times.fed, record.times.Decode());
  return spans;
}

// How many lines were left out before this one; absent: it is, too.
std::optional<int64_t> TakeLine(LineLimit& limit, bool limited,
                                absl::Duration now) {
  return limited ? limit.Take(now) : 0;
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

std::string HashOf(const SessionName& session) {
  if (session.empty()) return "";
  return absl::BytesToHexString(Sha256Of(session.text()).substr(0, kHashBytes));
}

void CountCall(const CallRecord& record, const absl::Status& status) {
  record.metrics->Update([&](Snapshot& s) {
    ++s.calls[{record.method, status.code()}];
  });
}

void EndRecord(const CallRecord& record, const absl::Status& status) {
  CountCall(record, status);
  const absl::Duration now = record.clock->Monotonic();
  const bool failed = IsServerError(status.code());
  const LogSeverity severity =
      failed ? LogSeverity::kError : LogSeverity::kInfo;
  const LogFields fields = LineOf(record, status, now);
  if (record.lines == nullptr) return Log(severity, "call", fields);
  CallLines& lines = *record.lines;
  const auto kept = TakeLine(lines.strangers, record.tenant.empty(), now);
  if (kept.has_value() && lines.spans != nullptr && record.trace.sampled) {
    lines.spans->Add(OtlpLine(SpansOf(record, status, now)));
  }
  if (kept.has_value() && lines.audit != nullptr) {
    AddEvent(lines.audit, severity, "call", WithLeftOut(fields, *kept));
  }
  const auto line = TakeLine(lines.refusals, !status.ok() && !failed, now);
  if (!line.has_value()) return;
  Log(severity, "call", WithLeftOut(fields, *line));
}

namespace {

// From `begin` to `end`, or to `last` where the turn ended before.
absl::Duration Between(const std::optional<absl::Duration>& begin,
                       const std::optional<absl::Duration>& end,
                       const std::optional<absl::Duration>& last) {
  const std::optional<absl::Duration>& until = end.has_value() ? end : last;
  if (!begin.has_value() || !until.has_value()) return absl::ZeroDuration();
  return *until - *begin;
}

}  // namespace

absl::Duration TurnTimes::Queue() const {
  return Between(queued, started, ended);
}

absl::Duration TurnTimes::Prefill() const {
  return Between(started, fed, ended);
}

absl::Duration TurnTimes::Decode() const { return Between(fed, ended, ended); }

void EndWell(const TurnTiming& timing, TurnTimes* times) {
  if (!times->queued.has_value() || !times->started.has_value()) {
    *times = TurnTimes();
    return;
  }
  times->started = *times->queued + absl::Seconds(timing.queued_seconds);
  times->fed = *times->started + absl::Seconds(timing.prefill_seconds);
  times->ended = *times->fed + absl::Seconds(timing.decode_seconds);
}

}  // namespace txl
