#pragma once

// A whole server without weights and the listener that administers it.

#include <memory>
#include <string>
#include <vector>

#include "server/api/service_context.h"
#include "tests/server/rpc/rpc_world.h"
#include "txl/v1/admin_service.grpc.pb.h"

namespace txl {

class AdminWorld {
 public:
  // `listen`: of administration; empty: a Unix socket, which needs no key.
  explicit AdminWorld(RpcWorldOptions options = {}, std::string listen = "");
  ~AdminWorld();

  // "OK", "INVALID_ARGUMENT FIELD_INVALID tenant": what became of a call, as
  // rpc_world.h has it. `request` is in protobuf's text format.
  template <typename Request, typename Response>
  std::string Call(grpc::Status (v1::AdminService::StubInterface::*method)(
                       grpc::ClientContext*, const Request&, Response*),
                   const std::string& request, Response* response) {
    grpc::ClientContext client;
    return Outcome(
        (admin.get()->*method)(&client, Proto<Request>(request), response));
  }

  RpcWorld rpc;
  // What administration asked of the server.
  int drains = 0;
  bool may_drain = true;
  std::vector<ReloadedFile> files;
  Administration administration;
  ServiceContext context;
  std::unique_ptr<GrpcServer> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::AdminService::StubInterface> admin;
};

using Admin = v1::AdminService::StubInterface;

// "/txl.v1.AdminService/Dump" and all others, from the descriptors.
std::vector<std::string> EveryAdminMethod();

}  // namespace txl
