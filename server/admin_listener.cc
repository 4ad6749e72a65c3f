#include "server/admin_listener.h"

#include <utility>

#include "absl/strings/match.h"
#include "model/base/status_macros.h"

namespace txl {

AdminListener::AdminListener(Administration administration,
                             const ServiceContext& context)
    : administration_(std::move(administration)), context_(context) {
  context_.administration = &administration_;
}

absl::StatusOr<std::unique_ptr<AdminListener>> AdminListener::Start(
    const std::string& listen, Administration administration,
    const ServiceContext& context, const CertificateWatch* certificates) {
  std::unique_ptr<AdminListener> listener(
      new AdminListener(std::move(administration), context));
  // The kernel has asked already.
  if (absl::StartsWith(listen, "unix:")) listener->context_.keys = nullptr;
  TXL_ASSIGN_OR_RETURN(listener->socket_lock_, LockSocket(listen));
  TXL_ASSIGN_OR_RETURN(
      listener->server_,
      GrpcServer::Start(listen, &listener->context_, certificates));
  listener->server_->SetServing(true);
  return listener;
}

}  // namespace txl
