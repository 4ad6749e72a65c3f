#include "tests/server/rpc/admin_world.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace txl {
namespace {

std::string OwnSocket() {
  return absl::StrCat("unix:", ::testing::TempDir(), "/admin-world-", getpid());
}

}  // namespace

AdminWorld::AdminWorld(RpcWorldOptions options, std::string listen)
    : rpc(std::move(options)) {
  if (listen.empty()) listen = OwnSocket();
  administration.reload = [this] { return files; };
  administration.drain = [this] {
    if (may_drain) ++drains;
    return may_drain;
  };
  administration.status = [this] { return rpc.server->Status(); };
  context = rpc.context;
  context.administration = &administration;
  if (absl::StartsWith(listen, "unix:")) context.keys = nullptr;
  auto started = GrpcServer::Start(listen, &context);
  EXPECT_TRUE(started.ok()) << started.status();
  server = *std::move(started);
  server->SetServing(true);
  channel = grpc::CreateChannel(server->address(),
                                grpc::InsecureChannelCredentials());
  admin = v1::AdminService::NewStub(channel);
}

AdminWorld::~AdminWorld() { server->Shutdown(absl::Milliseconds(200)); }

std::vector<std::string> EveryAdminMethod() {
  std::vector<std::string> methods;
  const auto* const service =
      v1::DumpRequest::descriptor()->file()->FindServiceByName("AdminService");
  for (int i = 0; i < service->method_count(); ++i) {
    methods.push_back(absl::StrCat("/", service->full_name(), "/",
                                   service->method(i)->name()));
  }
  return methods;
}

}  // namespace txl
