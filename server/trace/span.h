#pragma once

// Spans as OTLP/JSON: what the OpenTelemetry collector's otlpjsonfile receiver
// reads, https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/.

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/base/log_format.h"

namespace txl {

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
