#pragma once

// The only place where errors become gRPC's: canonical code, message and
// google.rpc details (ErrorInfo always; BadRequest when a field is named;
// RetryInfo when a retry makes sense).

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace txl {

// The domain of every ErrorInfo.
inline constexpr char kErrorDomain[] = "txl.v1";

// Messages are cut to 512 bytes (trailers are limited to 8 KiB in all). An
// error of code INTERNAL or UNKNOWN that carries no reason did not come from
// the server's own rules: its text is not shown to clients.
grpc::Status ToGrpcStatus(const absl::Status& status);

// The reason in ErrorInfo: that of the details, else the code's name.
std::string ReasonOf(const absl::Status& status);

// Cuts valid UTF-8 to at most `bytes` bytes, at the border of a character.
std::string CutUtf8(const std::string& text, size_t bytes);

}  // namespace txl
