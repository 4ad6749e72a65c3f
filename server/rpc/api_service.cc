#include "server/rpc/api_service.h"

#include <string>

#include "absl/strings/strip.h"
#include "server/api/methods.h"
#include "server/rpc/open_call.h"

namespace txl {
namespace {

class NoSuchMethod final : public grpc::ServerGenericBidiReactor {
 public:
  NoSuchMethod() { Finish({grpc::StatusCode::UNIMPLEMENTED, ""}); }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* ApiService::CreateReactor(
    grpc::GenericCallbackServerContext* call) {
  const std::string& path = call->method();
  const ApiMethod* method = FindMethod(absl::StripPrefix(path, "/"));
  if (method == nullptr || path.front() != '/') return new NoSuchMethod;
  return OpenCall::Open(call, *method, desk_);
}

}  // namespace txl
