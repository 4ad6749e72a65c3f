#include "server/rpc/call_context.h"

#include <grpc/grpc_security_constants.h>

#include <chrono>
#include <vector>

#include "server/api/convert_input.h"

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

}  // namespace txl
