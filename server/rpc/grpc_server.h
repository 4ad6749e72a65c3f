#pragma once

// A gRPC server, with transport settings that keep a hostile or broken client
// from hurting others: the three services, reflection and health checking, or
// administration and health checking (ServiceContext::administration).

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/api/api_call.h"
#include "server/api/call_desk.h"
#include "server/api/service_context.h"
#include "server/rpc/connection_gate.h"
#include "server/rpc/tls_server_credentials.h"
#include "server/tls/certificate_watch.h"

namespace txl {

// grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo as a method
// among the others: gRPC's own service of reflection would answer anybody.
// Defined in reflection.cc.
const ApiMethod& ReflectionMethod();

// Every method of the API, and reflection, behind one generic service: a path
// that is not in its table is UNIMPLEMENTED. With a context for administration
// it has that service's methods and nothing else. Who calls is asked before
// anything of a message is read. Thread-safe. The desk outlives the service.
class ApiService final : public grpc::CallbackGenericService {
 public:
  explicit ApiService(CallDesk* desk) : desk_(desk) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* call) override;

 private:
  CallDesk* const desk_;
};

// For this process, before it uses gRPC or has threads. With gRPC 1.51's
// "tcp_read_chunks" a connection keeps as much room to read into as its busiest
// moment had, megabytes; without, the transport's own limit holds. What the
// environment's GRPC_EXPERIMENTS says is kept, and wins.
void SetGrpcExperiments();

class GrpcServer {
 public:
  // Listens on "HOST:PORT" (port 0: any free one) or "unix:PATH"; health is
  // NOT_SERVING. With `certificates` HOST:PORT takes TLS alone; a Unix socket
  // never does, and one for administration is its owner's alone. The context
  // and they outlive the server.
  // Errors: Unavailable when the address cannot be listened on.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(
      const std::string& listen, const ServiceContext* context,
      const CertificateWatch* certificates = nullptr);
  // REQUIRES: Shutdown was called.
  ~GrpcServer();

  // The address with the real port.
  const std::string& address() const { return gate_->address(); }

  // Where calls of other transports are taken on too.
  CallDesk* desk() { return &desk_; }

  // Thread-safe.
  CallCounts calls() const { return desk_.counts(); }
  ConnectionCounts connections() const { return gate_->counts(); }

  // The whole server now, for scrapes. Thread-safe.
  ServerStatus Status() const { return desk_.Status(); }

  // What health checking answers for "" and every service. Thread-safe.
  void SetServing(bool serving);

  // Refuses new connections and calls, waits for running calls until the
  // deadline, then cuts them off. Blocks until every call is done.
  void Shutdown(absl::Duration timeout);

 private:
  explicit GrpcServer(const ServiceContext* context);

  const bool administration_;
  CallDesk desk_;
  ApiService api_;
  std::unique_ptr<TlsServerCredentials> tls_;  // null: none
  std::unique_ptr<ConnectionGate> gate_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace txl
