#pragma once

// The listener of administration.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/api/service_context.h"
#include "server/listen_address.h"
#include "server/rpc/grpc_server.h"
#include "server/tls/certificate_watch.h"

namespace txl {

class AdminListener {
 public:
  // Listens on "unix:PATH", which its owner alone may open and which is then
  // asked for no key, or on HOST:PORT, with TLS where there are certificates.
  // `context` is that of the server that is administered; what it points to,
  // and what `administration` calls, outlives this, as the certificates do.
  // Errors: Unavailable.
  static absl::StatusOr<std::unique_ptr<AdminListener>> Start(
      const std::string& listen, Administration administration,
      const ServiceContext& context, const CertificateWatch* certificates);

  // Address with the port that was bound.
  const std::string& address() const { return server_->address(); }

  // Shuts down as GrpcServer::Shutdown does. Call it before destruction.
  void Shutdown(absl::Duration timeout) { server_->Shutdown(timeout); }

 private:
  AdminListener(Administration administration, const ServiceContext& context);

  const Administration administration_;
  ServiceContext context_;
  SocketLock socket_lock_;  // outlives server_
  std::unique_ptr<GrpcServer> server_;
};

}  // namespace txl
