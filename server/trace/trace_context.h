#pragma once

// Identity of a call on its way from the client through proxies to this server:
// the traceparent of W3C's Trace Context, https://www.w3.org/TR/trace-context/.

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/log.h"

namespace txl {

// Carries a call's trace in both directions: gRPC's metadata, HTTP's header.
inline constexpr char kTraceparent[] = "traceparent";

// What a traceparent says. Ids are of lower-case hex digits, never all zeros.
struct TraceParent {
  std::string trace_id;  // 32 digits
  std::string span_id;   // 16 digits, of who sent it
  bool sampled = false;

  friend bool operator==(const TraceParent&, const TraceParent&) = default;
};

// Absent: not valid. Of a version above 00 the first four fields are read.
std::optional<TraceParent> ParseTraceparent(absl::string_view text);

// Where a call stands in its trace.
struct TraceContext {
  std::string trace_id;
  std::string span_id;    // the server's own, of this call
  std::string parent_id;  // the client's span; empty: it sent none
  bool sampled = false;   // its span is written
};

// `sent`: every traceparent of the call. An invalid one, or more than one,
// count as none: a trace is made then. A trace that its client does not sample
// is sampled, by its id, with the probability `rate`: alike on all servers of
// one rate.
TraceContext StartTrace(const std::vector<std::string>& sent, double rate);

// A further span of the same trace, below that of `context`.
TraceContext SpanBelow(const TraceContext& context);

// What is sent back: the server's span as the parent.
std::string TraceparentOf(const TraceContext& context);

// 16 random hex digits.
std::string NewSpanId();

// Whether one in 1 / rate ids, this one among them, is sampled. `trace_id`: 32
// hex digits.
bool IsSampled(absl::string_view trace_id, double rate);

// Spans as OTLP/JSON: what the OpenTelemetry collector's otlpjsonfile receiver
// reads, https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/.

// One thing that took time.
struct Span {
  std::string trace_id;  // ids as in a traceparent
  std::string span_id;
  std::string parent_id;  // empty: none
  std::string name;
  bool of_server = false;  // answers somebody outside; else a part of that
  absl::Time start;
  absl::Time end;
  LogFields attributes;  // empty texts are left out
  bool ok = true;
  std::string error;  // of one that is not, a name
};

// One ExportTraceServiceRequest as a line without its end.
std::string OtlpLine(const std::vector<Span>& spans);

}  // namespace txl
