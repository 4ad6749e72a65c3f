#include "server/rpc/api_service.h"

#include "absl/strings/strip.h"
#include "server/rpc/alternatives.h"
#include "server/rpc/generation_service.h"
#include "server/rpc/model_service.h"
#include "server/rpc/session_branches.h"
#include "server/rpc/session_service.h"
#include "server/rpc/session_transfer.h"

namespace txl {
namespace {

constexpr ApiMethod kMethods[] = {
    {"txl.v1.GenerationService/Generate", Admission::kNewWork, Generate},
    {"txl.v1.GenerationService/Score", Admission::kNewWork, Score},
    {"txl.v1.GenerationService/ScoreAlternatives", Admission::kNewWork,
     ScoreAlternatives},
    {"txl.v1.SessionService/CreateSession", Admission::kNewWork, CreateSession},
    {"txl.v1.SessionService/GetSession", Admission::kServing, GetSession},
    {"txl.v1.SessionService/ListSessions", Admission::kServing, ListSessions},
    {"txl.v1.SessionService/DeleteSession", Admission::kServing, DeleteSession},
    {"txl.v1.SessionService/AppendTokens", Admission::kNewWork, AppendTokens},
    {"txl.v1.SessionService/ForkSession", Admission::kNewWork, ForkSession},
    {"txl.v1.SessionService/RewindSession", Admission::kServing, RewindSession},
    {"txl.v1.SessionService/ExportSession", Admission::kNewWork, ExportSession},
    {"txl.v1.SessionService/ImportSession", Admission::kNewWork, ImportSession,
     true},
    {"txl.v1.ModelService/GetModel", Admission::kAlways, GetModel},
    {"txl.v1.ModelService/GetServerStatus", Admission::kAlways,
     GetServerStatus},
    {"txl.v1.ModelService/Tokenize", Admission::kNewWork, Tokenize},
    {"txl.v1.ModelService/Detokenize", Admission::kNewWork, Detokenize},
};

class NoSuchMethod final : public grpc::ServerGenericBidiReactor {
 public:
  NoSuchMethod() { Finish({grpc::StatusCode::UNIMPLEMENTED, ""}); }
  void OnDone() override { delete this; }
};

}  // namespace

const ApiMethod* FindMethod(absl::string_view path) {
  if (!absl::ConsumePrefix(&path, "/")) return nullptr;
  for (const ApiMethod& method : kMethods) {
    if (path == method.name) return &method;
  }
  return nullptr;
}

grpc::ServerGenericBidiReactor* ApiService::CreateReactor(
    grpc::GenericCallbackServerContext* call) {
  const ApiMethod* method = FindMethod(call->method());
  if (method == nullptr) return new NoSuchMethod;
  return OpenCall::Open(call, *method, desk_);
}

}  // namespace txl
