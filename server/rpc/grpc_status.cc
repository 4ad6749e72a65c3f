#include "server/rpc/grpc_status.h"

#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/base/error.h"

namespace txl {
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
