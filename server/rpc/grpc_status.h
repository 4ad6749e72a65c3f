#pragma once

// The only place where errors become gRPC's: canonical code, the text that is
// shown and google.rpc details (ErrorInfo always; BadRequest when a field is
// named; RetryInfo when a retry makes sense).

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace txl {

// The domain of every ErrorInfo.
inline constexpr char kErrorDomain[] = "txl.v1";

grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace txl
