#pragma once

// Whether what the flags say may be reached from other machines.

#include <string>

#include "absl/status/status.h"
#include "server/tls/tls_credentials.h"

namespace txl {

// Of "HOST:PORT" or "unix:PATH": only this machine can connect. A name other
// than "localhost" may mean anything.
bool IsOfThisMachine(const std::string& listen);

// The flags that it depends on; addresses as above, but for the first they may
// be empty.
struct Exposure {
  std::string listen;
  std::string http_listen;
  TlsFiles tls;
  bool insecure = false;
  std::string admin_listen = {};
};

// InvalidArgument, naming the flag: gRPC or HTTP would listen beyond this
// machine with neither TLS nor --insecure, or a file of TLS is named without
// the others that it needs; or administration would listen beyond this machine
// at all.
absl::Status CheckExposure(const Exposure& exposure);

}  // namespace txl
