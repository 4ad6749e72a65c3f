#pragma once

// Whether what the flags say may be reached from other machines.

#include <string>

#include "absl/status/status.h"
#include "server/flags.h"

namespace txl {

// Of "HOST:PORT" or "unix:PATH": only this machine can connect. A name other
// than "localhost" may mean anything.
bool IsOfThisMachine(const std::string& listen);

// InvalidArgument, naming the flag: gRPC or HTTP would listen beyond this
// machine with neither TLS nor --insecure, or a file of TLS is named without
// the others that it needs.
absl::Status CheckExposure(const ServerFlags& flags);

}  // namespace txl
