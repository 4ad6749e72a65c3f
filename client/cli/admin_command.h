#pragma once

// Answers of AdminService for people. Each text ends with its line.
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "client/call_error.h"
#include "client/channel.h"
#include "client/cli/command.h"
#include "txl/v1/admin_service.grpc.pb.h"
#include "txl/v1/admin_service.pb.h"

namespace txl::cli {
// Above FormatTenantSession's lines.
std::string TenantSessionHeader();
std::string FormatTenantSession(const v1::TenantSession& session);

// A table: of each quota what is taken and the limit, "3/8"; "-": none.
std::string FormatQuotas(const v1::GetQuotasResponse& quotas);
// A line for each file.
std::string FormatReload(const v1::ReloadResponse& reload);
// The tenants whose turns are refused, and how many turns of `tenant` go on.
std::string FormatDrain(const std::string& tenant,
                        const v1::DrainTenantResponse& drain);

// Calls of txl.v1.AdminService.

class AdminClient {
 public:
  // Errors: those of OpenChannel.
  static absl::StatusOr<AdminClient> Create(const ServerFlags& flags) {
    auto channel = OpenChannel(flags.channel);
    if (!channel.ok()) return channel.status();
    return AdminClient(flags, v1::AdminService::NewStub(*channel));
  }

  // Call(&Admin::Reload, request). Errors: the server's.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(
      grpc::Status (v1::AdminService::StubInterface::*method)(
          grpc::ClientContext*, const Request&, Response*),
      const Request& request) const {
    grpc::ClientContext context;
    if (timeout_ != absl::InfiniteDuration()) {
      context.set_deadline(absl::ToChronoTime(absl::Now() + timeout_));
    }
    Response response;
    const absl::Status status =
        FromGrpcStatus((stub_.get()->*method)(&context, request, &response));
    if (!status.ok()) return status;
    return response;
  }

 private:
  AdminClient(const ServerFlags& flags,
              std::unique_ptr<v1::AdminService::StubInterface> stub)
      : timeout_(flags.call_options().timeout), stub_(std::move(stub)) {}

  absl::Duration timeout_;
  std::unique_ptr<v1::AdminService::StubInterface> stub_;
};

using Admin = v1::AdminService::StubInterface;

}  // namespace txl::cli
