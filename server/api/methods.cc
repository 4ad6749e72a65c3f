#include "server/api/methods.h"

#include <memory>
#include <type_traits>

#include "absl/types/span.h"
#include "server/api/services.h"
#include "server/api/session_transfer.h"

namespace txl {
namespace {

// Gives a method its part of the context.
template <auto method>
void On(const ServiceContext& context, const std::shared_ptr<ApiCall>& call) {
  using Method = decltype(method);
  using Call = const std::shared_ptr<ApiCall>&;
  if constexpr (std::is_invocable_v<Method, const ServiceContext&, Call>) {
    method(context, call);
  } else if constexpr (std::is_invocable_v<Method, const TurnContext&, Call>) {
    method(context.turns, call);
  } else if constexpr (std::is_invocable_v<Method, const ServedModel&, Call>) {
    method(context.turns.model, call);
  } else {
    method(call);
  }
}

constexpr ApiMethod kMethods[] = {
    {"txl.v1.GenerationService/Generate", Admission::kNewWork, On<Generate>,
     kUsers},
    {"txl.v1.GenerationService/Score", Admission::kNewWork, On<Score>,
     kScorers},
    {"txl.v1.GenerationService/ScoreAlternatives", Admission::kNewWork,
     On<ScoreAlternatives>, kScorers},
    {"txl.v1.SessionService/CreateSession", Admission::kNewWork,
     On<CreateSession>, kUsers},
    {"txl.v1.SessionService/GetSession", Admission::kServing, On<GetSession>,
     kUsers},
    {"txl.v1.SessionService/ListSessions", Admission::kServing,
     On<ListSessions>, kUsers},
    {"txl.v1.SessionService/DeleteSession", Admission::kServing,
     On<DeleteSession>, kUsers},
    {"txl.v1.SessionService/AppendTokens", Admission::kNewWork,
     On<AppendTokens>, kUsers},
    {"txl.v1.SessionService/ForkSession", Admission::kNewWork, On<ForkSession>,
     kUsers},
    {"txl.v1.SessionService/RewindSession", Admission::kServing,
     On<RewindSession>, kUsers},
    {"txl.v1.SessionService/ExportSession", Admission::kNewWork,
     On<ExportSession>, kUsers},
    {"txl.v1.SessionService/ImportSession", Admission::kNewWork,
     On<ImportSession>, kUsers, true},
    {"txl.v1.ModelService/GetModel", Admission::kAlways, On<GetModel>,
     kScorers},
    {"txl.v1.ModelService/GetServerStatus", Admission::kAlways,
     On<GetServerStatus>, kWatchers},
    {"txl.v1.ModelService/Tokenize", Admission::kNewWork, On<Tokenize>,
     kScorers},
    {"txl.v1.ModelService/Detokenize", Admission::kNewWork, On<Detokenize>,
     kScorers},
};

// Always: administration is wanted most where a server can do nothing else.
constexpr ApiMethod kAdminMethods[] = {
    {"txl.v1.AdminService/ListTenantSessions", Admission::kAlways,
     ListTenantSessions, kAdmins},
    {"txl.v1.AdminService/MoveOutSession", Admission::kAlways, MoveOutSession,
     kAdmins},
    {"txl.v1.AdminService/EndSession", Admission::kAlways, EndSession, kAdmins},
    {"txl.v1.AdminService/DrainTenant", Admission::kAlways, DrainTenant,
     kAdmins},
    {"txl.v1.AdminService/DrainServer", Admission::kAlways, DrainServer,
     kAdmins},
    {"txl.v1.AdminService/GetQuotas", Admission::kAlways, GetQuotas, kAdmins},
    {"txl.v1.AdminService/Reload", Admission::kAlways, Reload, kAdmins},
    {"txl.v1.AdminService/SetLogLevel", Admission::kAlways, On<ChangeLogLevel>,
     kAdmins},
    {"txl.v1.AdminService/Dump", Admission::kAlways, Dump, kAdmins},
};

const ApiMethod* Find(absl::Span<const ApiMethod> methods,
                      absl::string_view name) {
  for (const ApiMethod& method : methods) {
    if (name == method.name) return &method;
  }
  return nullptr;
}

}  // namespace

const ApiMethod* FindMethod(absl::string_view name) {
  return Find(kMethods, name);
}

const ApiMethod* FindAdminMethod(absl::string_view name) {
  return Find(kAdminMethods, name);
}

}  // namespace txl
