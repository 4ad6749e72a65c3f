#include "server/rpc/api_service.h"

#include "absl/strings/strip.h"
#include "server/api/methods.h"
#include "server/rpc/call_context.h"
#include "server/rpc/open_call.h"
#include "server/rpc/reflection.h"

namespace txl {
namespace {

// Says no more than any method to who has no key.
class NoSuchMethod final : public grpc::ServerGenericBidiReactor {
 public:
  NoSuchMethod(CallDesk& desk, grpc::GenericCallbackServerContext& context) {
    const CallOrigin origin = OriginOf(context, desk.context().trace_rate);
    context.AddInitialMetadata(kTraceparent, TraceparentOf(origin.trace));
    const absl::StatusOr<Caller> caller =
        Identify(desk.context().keys, CallCredentials(context));
    if (caller.ok()) {
      Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, ""));
      return;
    }
    CallRecord record =
        StartRecord("unknown", desk.context().clock, desk.context().metrics);
    record.lines = &desk.lines();
    record.peer = origin.peer;
    record.trace = origin.trace;
    EndRecord(record, caller.status());
    Finish(ToGrpcStatus(caller.status()));
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
  const ApiMethod* method =
      MethodOf(call->method(), desk_->context().administration != nullptr);
  if (method == nullptr) return new NoSuchMethod(*desk_, *call);
  return OpenCall::Open(call, *method, desk_);
}

}  // namespace txl
