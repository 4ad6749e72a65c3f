#include "server/rpc/call_context.h"

#include <grpc/grpc_security_constants.h>

#include <chrono>
#include <string>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/api/convert_input.h"
#include "server/base/error.h"

namespace txl {
namespace {

std::vector<std::string> ValuesOf(const grpc::CallbackServerContext& context,
                                  const char* name) {
  const auto [begin, end] = context.client_metadata().equal_range(name);
  std::vector<std::string> values;
  for (auto it = begin; it != end; ++it) {
    values.emplace_back(it->second.data(), it->second.size());
  }
  return values;
}

}  // namespace

absl::Status CheckMetadata(const grpc::CallbackServerContext& context,
                           const std::string& session_id) {
  return CheckSessionMetadata(ValuesOf(context, kSessionMetadata), session_id);
}

CallOrigin OriginOf(const grpc::CallbackServerContext& context, double rate) {
  return {context.peer(), StartTrace(ValuesOf(context, kTraceparent), rate)};
}

Credentials CallCredentials(const grpc::CallbackServerContext& context) {
  const auto certificate = PeerCertificateOf(context);
  return {ValuesOf(context, "authorization"),
          certificate.has_value() ? certificate->common_name : ""};
}

std::optional<absl::Duration> CallDeadline(
    const grpc::CallbackServerContext& context, Clock* clock) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) {
    return std::nullopt;
  }
  return clock->Monotonic() +
         absl::FromChrono(deadline - std::chrono::system_clock::now());
}

std::optional<PeerCertificate> PeerCertificateOf(
    const grpc::ServerContextBase& context) {
  const auto peer = context.auth_context();
  if (peer == nullptr || !peer->IsPeerAuthenticated()) return std::nullopt;
  PeerCertificate certificate;
  for (const grpc::string_ref& name :
       peer->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME)) {
    certificate.common_name.assign(name.data(), name.size());
  }
  for (const grpc::string_ref& uri :
       peer->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    certificate.uris.emplace_back(uri.data(), uri.size());
  }
  return certificate;
}

gpr_timespec InTime(absl::Duration after) {
  return gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_nanos(absl::ToInt64Nanoseconds(after), GPR_TIMESPAN));
}

namespace {

void SetDuration(absl::Duration from, google::protobuf::Duration* to) {
  absl::Duration rest;
  to->set_seconds(absl::IDivDuration(from, absl::Seconds(1), &rest));
  to->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const ErrorDetails details = GetErrorDetails(status);
  const std::string message = ShownText(status);

  google::rpc::ErrorInfo info;
  info.set_domain(kErrorDomain);
  info.set_reason(ReasonOf(status));
  for (const auto& [key, value] : details.metadata) {
    (*info.mutable_metadata())[key] = value;
  }
  google::rpc::Status rich;
  rich.set_code(static_cast<int>(status.code()));
  rich.set_message(message);
  rich.add_details()->PackFrom(info);
  if (!details.field.empty()) {
    google::rpc::BadRequest bad;
    auto* violation = bad.add_field_violations();
    violation->set_field(details.field);
    violation->set_description(message);
    rich.add_details()->PackFrom(bad);
  }
  if (details.retry.has_value()) {
    google::rpc::RetryInfo retry;
    SetDuration(*details.retry, retry.mutable_retry_delay());
    rich.add_details()->PackFrom(retry);
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message,
                      rich.SerializeAsString());
}

}  // namespace txl
