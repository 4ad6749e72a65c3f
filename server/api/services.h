#pragma once

// The methods of the API, service by service. Transports find them by name in
// the tables of methods.h.

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/api/api_call.h"
#include "server/api/service_context.h"
#include "server/scheduler/scheduler_report.h"

namespace txl {

// txl.v1.GenerationService: Generate and Score as turns of the scheduler.
void Generate(const TurnContext& service, const std::shared_ptr<ApiCall>& call);
void Score(const TurnContext& service, const std::shared_ptr<ApiCall>& call);

// One turn of the scheduler for all alternatives.
void ScoreAlternatives(const TurnContext& service,
                       const std::shared_ptr<ApiCall>& call);

// txl.v1.SessionService on the session store; AppendTokens is a turn.
// session_transfer.h has ExportSession and ImportSession.
void CreateSession(const TurnContext& service,
                   const std::shared_ptr<ApiCall>& call);
void GetSession(const TurnContext& service,
                const std::shared_ptr<ApiCall>& call);
void ListSessions(const TurnContext& service,
                  const std::shared_ptr<ApiCall>& call);
void DeleteSession(const TurnContext& service,
                   const std::shared_ptr<ApiCall>& call);
void AppendTokens(const TurnContext& service,
                  const std::shared_ptr<ApiCall>& call);
void ForkSession(const TurnContext& service,
                 const std::shared_ptr<ApiCall>& call);
void RewindSession(const TurnContext& service,
                   const std::shared_ptr<ApiCall>& call);

// txl.v1.ModelService: facts, counters and the tokenizer. The first two answer
// in every phase of the server.
void GetModel(const ServedModel& model, const std::shared_ptr<ApiCall>& call);
void GetServerStatus(const std::shared_ptr<ApiCall>& call);
void Tokenize(const ServedModel& model, const std::shared_ptr<ApiCall>& call);
void Detokenize(const ServedModel& model, const std::shared_ptr<ApiCall>& call);

// txl.v1.AdminService: the server, its tenants and the sessions of any tenant.
// REQUIRES: the context has an Administration.
void DrainTenant(const ServiceContext& service,
                 const std::shared_ptr<ApiCall>& call);
void DrainServer(const ServiceContext& service,
                 const std::shared_ptr<ApiCall>& call);
void GetQuotas(const ServiceContext& service,
               const std::shared_ptr<ApiCall>& call);
void Reload(const ServiceContext& service,
            const std::shared_ptr<ApiCall>& call);
void ChangeLogLevel(const std::shared_ptr<ApiCall>& call);
void Dump(const ServiceContext& service, const std::shared_ptr<ApiCall>& call);

// What Dump answers: the server's state as JSON, for a report of a bug. An
// object with "model", "status", "scheduler" and "store" (the proto has what
// they are). Nothing of it is text of a session, a token id or the name of a
// session or a tenant: instead of a name there are 16 hex digits of its
// SHA-256, for a session those of HashOf. `scheduler`: nothing where it did not
// answer, which is said.
std::string DumpJson(const ServiceContext& service,
                     const std::optional<SchedulerReport>& scheduler);

// FIELD_INVALID tenant.
absl::Status CheckTenantField(const std::string& tenant);

void ListTenantSessions(const ServiceContext& service,
                        const std::shared_ptr<ApiCall>& call);
void MoveOutSession(const ServiceContext& service,
                    const std::shared_ptr<ApiCall>& call);
void EndSession(const ServiceContext& service,
                const std::shared_ptr<ApiCall>& call);

}  // namespace txl
