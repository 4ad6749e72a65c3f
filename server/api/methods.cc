#include "server/api/methods.h"

#include "server/api/alternatives.h"
#include "server/api/generation_service.h"
#include "server/api/model_service.h"
#include "server/api/session_branches.h"
#include "server/api/session_service.h"
#include "server/api/session_transfer.h"

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

}  // namespace

const ApiMethod* FindMethod(absl::string_view name) {
  for (const ApiMethod& method : kMethods) {
    if (name == method.name) return &method;
  }
  return nullptr;
}

}  // namespace txl
