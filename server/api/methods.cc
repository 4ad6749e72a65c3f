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

}  // namespace

const ApiMethod* FindMethod(absl::string_view name) {
  for (const ApiMethod& method : kMethods) {
    if (name == method.name) return &method;
  }
  return nullptr;
}

}  // namespace txl
