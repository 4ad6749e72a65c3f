#pragma once

// A TLS client's first bytes.

#include <string>

namespace txl {

// A ClientHello that offers HTTP/2 (RFC 8446, 4.1.2), which a server of TLS
// answers with its own.
std::string ClientHello();

}  // namespace txl
