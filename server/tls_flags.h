#pragma once

// The flags that say who is on the other side of a connection, and who listens
// to it.

#include "server/flag_table.h"
#include "server/tls/tls_credentials.h"

namespace txl {

// --tls-cert, --tls-key, --tls-client-ca, --tls-crl, --insecure. The targets
// outlive the table.
void AddTlsFlags(TlsFiles* files, bool* insecure, FlagTable* table);

}  // namespace txl
