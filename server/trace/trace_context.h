#pragma once

// By what a call is followed from its client through proxies to this server:
// the traceparent of W3C's Trace Context, https://www.w3.org/TR/trace-context/.

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

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

// Absent: it is none. Of a version above 00 the first four fields are read.
std::optional<TraceParent> ParseTraceparent(absl::string_view text);

// Where a call stands in its trace.
struct TraceContext {
  std::string trace_id;
  std::string span_id;    // the server's own, of this call
  std::string parent_id;  // the client's span; empty: it sent none
  bool sampled = false;   // its span is written
};

// `sent`: every traceparent of the call. One that is none, or more than one,
// count as none, for which a trace is made. A trace that its client does not
// sample is, by its id, with the probability `rate`: alike on all servers of
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

}  // namespace txl
