#include "server/api/methods.h"

#include "absl/types/span.h"
#include "server/api/admin_service.h"
#include "server/api/admin_sessions.h"
#include "server/api/alternatives.h"
#include "server/api/generation_service.h"
#include "server/api/model_service.h"
#include "server/api/session_branches.h"
#include "server/api/session_service.h"
#include "server/api/session_transfer.h"

namespace txl {
namespace {

constexpr ApiMethod kMethods[] = {
    {"txl.v1.GenerationService/Generate", Admission::kNewWork, Generate,
     kUsers},
    {"txl.v1.GenerationService/Score", Admission::kNewWork, Score, kScorers},
    {"txl.v1.GenerationService/ScoreAlternatives", Admission::kNewWork,
     ScoreAlternatives, kScorers},
    {"txl.v1.SessionService/CreateSession", Admission::kNewWork, CreateSession,
     kUsers},
    {"txl.v1.SessionService/GetSession", Admission::kServing, GetSession,
     kUsers},
    {"txl.v1.SessionService/ListSessions", Admission::kServing, ListSessions,
     kUsers},
    {"txl.v1.SessionService/DeleteSession", Admission::kServing, DeleteSession,
     kUsers},
    {"txl.v1.SessionService/AppendTokens", Admission::kNewWork, AppendTokens,
     kUsers},
    {"txl.v1.SessionService/ForkSession", Admission::kNewWork, ForkSession,
     kUsers},
    {"txl.v1.SessionService/RewindSession", Admission::kServing, RewindSession,
     kUsers},
    {"txl.v1.SessionService/ExportSession", Admission::kNewWork, ExportSession,
     kUsers},
    {"txl.v1.SessionService/ImportSession", Admission::kNewWork, ImportSession,
     kUsers, true},
    {"txl.v1.ModelService/GetModel", Admission::kAlways, GetModel, kScorers},
    {"txl.v1.ModelService/GetServerStatus", Admission::kAlways, GetServerStatus,
     kWatchers},
    {"txl.v1.ModelService/Tokenize", Admission::kNewWork, Tokenize, kScorers},
    {"txl.v1.ModelService/Detokenize", Admission::kNewWork, Detokenize,
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
    {"txl.v1.AdminService/SetLogLevel", Admission::kAlways, ChangeLogLevel,
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
