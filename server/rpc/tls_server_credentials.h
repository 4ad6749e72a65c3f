#pragma once

// TLS of gRPC's server with certificates that change while it runs. Not with
// gRPC's own watcher of files (experimental in 1.51), which serves with nothing
// once a key and a certificate do not fit each other.

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/tls/certificate_watch.h"

namespace txl {

// TLS 1.2 and 1.3; every handshake uses what `certificates` has then, and
// requires a client's certificate where they verify clients. They outlive the
// server.
std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials(
    const CertificateWatch* certificates);

}  // namespace txl
