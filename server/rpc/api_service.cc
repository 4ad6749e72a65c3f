#include "server/rpc/api_service.h"

#include "absl/strings/strip.h"
#include "server/api/methods.h"
#include "server/rpc/call_context.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/open_call.h"
#include "server/rpc/reflection.h"

namespace txl {
namespace {

// Says no more than any method to who has no key.
class NoSuchMethod final : public grpc::ServerGenericBidiReactor {
 public:
  explicit NoSuchMethod(const absl::Status& caller) {
    Finish(caller.ok() ? grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "")
                       : ToGrpcStatus(caller));
  }
  void OnDone() override { delete this; }
};

const ApiMethod* MethodOf(absl::string_view path, bool administration) {
  if (!absl::ConsumePrefix(&path, "/")) return nullptr;
  if (administration) return FindAdminMethod(path);
  if (path == ReflectionMethod().name) return &ReflectionMethod();
  return FindMethod(path);
}

}  // namespace

grpc::ServerGenericBidiReactor* ApiService::CreateReactor(
    grpc::GenericCallbackServerContext* call) {
  const ServiceContext& context = desk_->context();
  const ApiMethod* method =
      MethodOf(call->method(), context.administration != nullptr);
  if (method == nullptr) {
    return new NoSuchMethod(
        LetIn(context.keys, CallCredentials(*call), kAnyKey).status());
  }
  return OpenCall::Open(call, *method, desk_);
}

}  // namespace txl
