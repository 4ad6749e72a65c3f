#pragma once

// The gRPC server: the three services, health checking and reflection, with
// transport settings that keep a hostile or broken client from hurting others.

#include <grpcpp/server.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/rpc/generation_service.h"
#include "server/rpc/model_service.h"
#include "server/rpc/service_context.h"
#include "server/rpc/session_service.h"

namespace txl {

class GrpcServer {
 public:
  // Listens on "HOST:PORT" (port 0: any free one) or "unix:PATH"; health is
  // NOT_SERVING. The context outlives the server.
  // Errors: Unavailable when the address cannot be listened on.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(
      const std::string& listen, const ServiceContext* context);
  // REQUIRES: Shutdown was called.
  ~GrpcServer();

  // The address with the real port.
  const std::string& address() const { return address_; }

  // What health checking answers for "" and every service. Thread-safe.
  void SetServing(bool serving);

  // Refuses new connections and calls, waits for running calls until the
  // deadline, then cuts them off. Blocks until every call is done.
  void Shutdown(absl::Duration timeout);

 private:
  explicit GrpcServer(const ServiceContext* context);

  GenerationService generation_;
  SessionService sessions_;
  ModelService model_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace txl
