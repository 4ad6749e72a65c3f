#include "client/call_error.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace txl {
namespace {

// Beside the types of the server's details.
constexpr char kTracePayload[] = "txl.v1/trace_id";
constexpr char kSessionPayload[] = "txl.v1/session_id";

// The trace id of a traceparent, "VERSION-TRACE-SPAN-FLAGS"; empty: none.
std::string TraceIdOf(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  const auto found = metadata.find("traceparent");
  if (found == metadata.end()) return "";
  const std::vector<absl::string_view> parts = absl::StrSplit(
      absl::string_view(found->second.data(), found->second.size()), '-');
  return parts.size() < 4 ? "" : std::string(parts[1]);
}

template <typename Detail>
std::string TypeUrl() {
  return absl::StrCat("type.googleapis.com/",
                      Detail::descriptor()->full_name());
}

template <typename Detail>
std::optional<Detail> GetDetail(const absl::Status& status) {
  const absl::optional<absl::Cord> payload =
      status.GetPayload(TypeUrl<Detail>());
  Detail detail;
  if (!payload.has_value() || !detail.ParseFromString(std::string(*payload))) {
    return std::nullopt;
  }
  return detail;
}

}  // namespace

absl::Status FromGrpcStatus(const grpc::Status& status) {
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
  google::rpc::Status details;
  if (result.ok() || !details.ParseFromString(status.error_details())) {
    return result;
  }
  for (const google::protobuf::Any& detail : details.details()) {
    result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

absl::Status FromGrpcStatus(const grpc::Status& status,
                            const grpc::ClientContext& call) {
  absl::Status result = FromGrpcStatus(status);
  if (result.ok()) return result;
  std::string trace = TraceIdOf(call.GetServerInitialMetadata());
  // Of an answer without a message, as a proxy's, all metadata are trailing.
  if (trace.empty()) trace = TraceIdOf(call.GetServerTrailingMetadata());
  if (!trace.empty()) result.SetPayload(kTracePayload, absl::Cord(trace));
  return result;
}

absl::Status WithSession(absl::Status status, const std::string& session_id) {
  if (!status.ok() && !session_id.empty()) {
    status.SetPayload(kSessionPayload, absl::Cord(session_id));
  }
  return status;
}

absl::Status About(absl::string_view what, const absl::Status& status) {
  absl::Status result(status.code(),
                      status.message().empty()
                          ? std::string(what)
                          : absl::StrCat(what, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& value) {
    result.SetPayload(type, value);
  });
  return result;
}

CallError GetCallError(const absl::Status& status) {
  CallError error;
  if (const auto session = status.GetPayload(kSessionPayload)) {
    error.session_id = std::string(*session);
  }
  if (const auto trace = status.GetPayload(kTracePayload)) {
    error.trace_id = std::string(*trace);
  }
  if (auto info = GetDetail<google::rpc::ErrorInfo>(status)) {
    error.reason = info->reason();
    error.metadata.insert(info->metadata().begin(), info->metadata().end());
  }
  if (auto bad_request = GetDetail<google::rpc::BadRequest>(status)) {
    for (const auto& violation : bad_request->field_violations()) {
      error.fields.push_back(violation.field());
    }
  }
  if (auto retry = GetDetail<google::rpc::RetryInfo>(status)) {
    error.retry_delay = absl::Seconds(retry->retry_delay().seconds()) +
                        absl::Nanoseconds(retry->retry_delay().nanos());
  }
  return error;
}

std::string DescribeError(const absl::Status& status) {
  const CallError error = GetCallError(status);
  std::string text = absl::StatusCodeToString(status.code());
  if (!error.reason.empty()) absl::StrAppend(&text, " (", error.reason, ")");
  for (const std::string& field : error.fields) {
    if (!absl::StrContains(status.message(), field)) {
      absl::StrAppend(&text, ": ", field);
    }
  }
  if (absl::StartsWith(error.reason, "SESSION_") && !error.session_id.empty()) {
    absl::StrAppend(&text, ": ", error.session_id);
  }
  absl::StrAppend(&text, ": ", status.message());
  if (error.retry_delay.has_value()) {
    absl::StrAppend(&text, "; retry after ",
                    absl::FormatDuration(*error.retry_delay));
  }
  if (!error.trace_id.empty()) {
    absl::StrAppend(&text, "; trace ", error.trace_id);
  }
  return text;
}

}  // namespace txl
