#include <google/protobuf/util/json_util.h>

#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "model/base/status_macros.h"
#include "server/api/call_record.h"
#include "server/api/convert_output.h"
#include "server/api/services.h"
#include "server/api/session_transfer.h"
#include "server/api/unary_turn.h"
#include "server/base/digest.h"
#include "server/base/error.h"
#include "server/base/line_file.h"
#include "server/base/log.h"
#include "server/session/session_name.h"
#include "txl/v1/admin_service.pb.h"

namespace txl {
namespace {

// What a dump waits for a scheduler whose device hangs.
constexpr absl::Duration kReportTime = absl::Seconds(2);

std::string LevelName(LogSeverity level) {
  return absl::AsciiStrToLower(LogSeverityName(level));
}

void WriteQuota(const std::optional<int64_t>& limit,
                const std::optional<int64_t>& used, v1::Quota* quota) {
  if (limit.has_value()) quota->set_limit(*limit);
  if (used.has_value()) quota->set_used(*used);
}

void WriteQuotas(const TenantUse& use, const SessionUse& kept,
                 v1::TenantQuotas* quotas) {
  const TenantLimits& limits = use.limits;
  quotas->set_tenant(use.tenant);
  quotas->set_weight(limits.weight);
  WriteQuota(limits.turns, use.turns, quotas->mutable_turns());
  WriteQuota(limits.sessions, kept.sessions, quotas->mutable_sessions());
  WriteQuota(limits.bytes, kept.bytes, quotas->mutable_bytes());
  WriteQuota(limits.calls_per_second, use.calls,
             quotas->mutable_calls_per_second());
  WriteQuota(limits.tokens_in_per_minute, use.tokens_in,
             quotas->mutable_tokens_in_per_minute());
  quotas->set_count_cached_tokens(limits.count_cached_tokens);
  WriteQuota(limits.tokens_out_per_minute, use.tokens_out,
             quotas->mutable_tokens_out_per_minute());
  if (limits.longest_turn.has_value()) {
    WriteDuration(*limits.longest_turn, quotas->mutable_longest_turn());
  }
}

// Tenants by name, those that drain and have not called among them.
std::map<std::string, v1::TenantQuotas> AllQuotas(
    const ServiceContext& service) {
  std::map<std::string, v1::TenantQuotas> all;
  if (service.tenants != nullptr) {
    const auto kept = service.turns.sessions->tenant_uses();
    for (const TenantUse& use :
         service.tenants->Use(service.clock->Monotonic())) {
      const auto of_tenant = kept.find(use.tenant);
      WriteQuotas(use,
                  of_tenant == kept.end() ? SessionUse() : of_tenant->second,
                  &all[use.tenant]);
    }
  }
  for (const std::string& tenant :
       service.turns.lifecycle->draining_tenants()) {
    v1::TenantQuotas& quotas = all[tenant];
    if (quotas.tenant().empty()) {
      quotas.set_tenant(tenant);
      quotas.set_weight(TenantLimits().weight);
    }
    quotas.set_draining(true);
  }
  return all;
}

absl::Status Drain(const ServiceContext& service,
                   const v1::DrainTenantRequest& request,
                   v1::DrainTenantResponse* response) {
  const std::string& tenant = request.tenant();
  TXL_RETURN_IF_ERROR(CheckTenantField(tenant));
  service.turns.lifecycle->SetTenantDraining(tenant, !request.undo());
  LogAndAudit(service.audit, LogSeverity::kInfo, "drain_tenant",
              {{"tenant", tenant}, {"draining", !request.undo()}});
  if (service.tenants != nullptr) {
    const absl::Duration now = service.clock->Monotonic();
    response->set_turns(service.tenants->Find(tenant, now)->Use(now).turns);
  }
  for (const std::string& name : service.turns.lifecycle->draining_tenants()) {
    response->add_draining_tenants(name);
  }
  return absl::OkStatus();
}

// Answers once: with the scheduler's report, or without when it does not come.
class DumpRun final : public std::enable_shared_from_this<DumpRun> {
 public:
  DumpRun(const ServiceContext& service, std::shared_ptr<ApiCall> call)
      : service_(service), call_(std::move(call)) {}

  void Start() {
    call_->After(kReportTime,
                 [self = shared_from_this()] { self->Answer(std::nullopt); });
    service_.turns.scheduler->Report([self = shared_from_this()](
                                         SchedulerReport report) {
      const auto held = std::make_shared<SchedulerReport>(std::move(report));
      self->service_.turns.callbacks->Run(
          [self, held] { self->Answer(std::move(*held)); });
    });
  }

 private:
  void Answer(std::optional<SchedulerReport> report) {
    if (answered_.exchange(true)) return;
    v1::DumpResponse response;
    response.set_json(DumpJson(service_, report));
    call_->Answer(response);
  }

  const ServiceContext& service_;
  const std::shared_ptr<ApiCall> call_;
  std::atomic<bool> answered_{false};
};

}  // namespace

void DrainTenant(const ServiceContext& service,
                 const std::shared_ptr<ApiCall>& call) {
  AnswerCall<v1::DrainTenantRequest, v1::DrainTenantResponse>(
      *call, [&](const auto& request, auto* response) {
        return Drain(service, request, response);
      });
}

void DrainServer(const ServiceContext& service,
                 const std::shared_ptr<ApiCall>& call) {
  AnswerCall<v1::DrainServerRequest, v1::DrainServerResponse>(
      *call, [&](const auto&, auto*) {
        if (service.administration->drain()) return absl::OkStatus();
        ErrorDetails details;
        details.reason = "NOT_READY";
        return MakeError(absl::StatusCode::kUnavailable,
                         "the server serves nothing yet", details);
      });
}

void GetQuotas(const ServiceContext& service,
               const std::shared_ptr<ApiCall>& call) {
  AnswerCall<v1::GetQuotasRequest, v1::GetQuotasResponse>(
      *call, [&](const auto&, auto* response) {
        for (auto& [tenant, quotas] : AllQuotas(service)) {
          *response->add_tenants() = std::move(quotas);
        }
        return absl::OkStatus();
      });
}

void Reload(const ServiceContext& service,
            const std::shared_ptr<ApiCall>& call) {
  AnswerCall<v1::ReloadRequest, v1::ReloadResponse>(
      *call, [&](const auto&, auto* response) {
        for (const ReloadedFile& file : service.administration->reload()) {
          v1::ReloadedFile* const read = response->add_files();
          read->set_setting(file.setting);
          read->set_path(file.path);
          read->set_error(std::string(file.status.message()));
        }
        return absl::OkStatus();
      });
}

void ChangeLogLevel(const std::shared_ptr<ApiCall>& call) {
  AnswerCall<v1::SetLogLevelRequest, v1::SetLogLevelResponse>(
      *call, [](const auto& request, auto* response) -> absl::Status {
        const auto level = ParseLogSeverity(request.level());
        if (!level.ok()) return FieldError("level", level.status().message());
        response->set_level_before(LevelName(LogLevel()));
        SetLogLevel(*level);
        return absl::OkStatus();
      });
}

void Dump(const ServiceContext& service, const std::shared_ptr<ApiCall>& call) {
  const auto request = call->Read<v1::DumpRequest>();
  if (!request.ok()) return call->End(request.status());
  std::make_shared<DumpRun>(service, call)->Start();
}

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kNameBytes = 8;  // of a digest: 16 hexadecimal digits

const char* KindName(TurnKind kind) {
  switch (kind) {
    case TurnKind::kGenerate:
      return "generate";
    case TurnKind::kAppend:
      return "append";
    case TurnKind::kScore:
      return "score";
    case TurnKind::kAlternatives:
      return "alternatives";
    case TurnKind::kSave:
      return "save";
  }
  return "";
}

// Null: it has none.
Json NameOf(const std::string& tenant) {
  if (tenant.empty()) return Json();
  return absl::BytesToHexString(Sha256Of(tenant).substr(0, kNameBytes));
}

// As lines of the log name it. Likewise.
Json NameOf(const SessionName& session) {
  return session.empty() ? Json() : Json(HashOf(session));
}

Json OfMessage(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  // Fails only for unknown Any types, of which the API has none.
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  return Json::parse(json);
}

Json OfTurn(const TurnReport& turn) {
  return {{"state", turn.state},
          {"kind", KindName(turn.kind)},
          {"key", turn.key},
          {"session", NameOf(turn.name)},
          {"tenant", NameOf(turn.tenant)},
          {"priority", turn.priority},
          {"age_seconds", absl::ToDoubleSeconds(turn.age)},
          {"tokens_in", turn.tokens_in},
          {"unsent", turn.unsent},
          {"slot", turn.slot},
          {"rows_left", turn.rows_left},
          {"tokens_in_flight", turn.tokens_in_flight},
          {"generated", turn.generated},
          {"parked", turn.parked},
          {"paused", turn.paused},
          {"away", turn.away}};
}

Json OfSlot(const SlotReport& slot) {
  return {{"slot", slot.slot},
          {"key", slot.key},
          {"rows", slot.rows},
          {"running", slot.running},
          {"leaving", slot.leaving},
          {"image_current", slot.image_current},
          {"idle_seconds",
           slot.running ? Json() : Json(absl::ToDoubleSeconds(slot.idle))}};
}

Json OfScheduler(const std::optional<SchedulerReport>& report) {
  if (!report.has_value()) return {{"answered", false}};
  Json turns = Json::array();
  for (const TurnReport& turn : report->turns) {
    turns.push_back(OfTurn(turn));
  }
  Json slots = Json::array();
  for (const SlotReport& slot : report->slots) slots.push_back(OfSlot(slot));
  return {{"answered", true},
          {"steps_planned", report->steps_planned},
          {"steps_in_flight", report->steps_in_flight},
          {"all_turns", report->all_turns},
          {"turns", turns},
          {"slots_total", report->slots_total},
          {"slots_used", report->slots_used},
          {"slots", slots}};
}

Json OfStore(const StoreReport& report) {
  Json sessions = Json::array();
  for (const SessionReport& session : report.sessions) {
    sessions.push_back({{"key", session.key},
                        {"session", NameOf(session.name)},
                        {"tenant", NameOf(session.name.tenant())},
                        {"busy", session.busy},
                        {"position", session.position},
                        {"durable_position", session.durable_position},
                        {"image_rows", session.image_rows},
                        {"has_image", session.has_image},
                        {"idle_seconds", absl::ToDoubleSeconds(session.idle)},
                        {"last_outcome", session.last_outcome}});
  }
  return {{"named", report.named},        {"temporary", report.temporary},
          {"deleted", report.deleted},    {"empty", report.empty},
          {"away", report.away},          {"in_slot", report.in_slot},
          {"sessions_in_slots", sessions}};
}

}  // namespace

std::string DumpJson(const ServiceContext& service,
                     const std::optional<SchedulerReport>& scheduler) {
  v1::GetModelResponse model;
  WriteModel(service.turns.model, &model);
  v1::GetServerStatusResponse status;
  WriteStatus(service.administration->status(), &status);
  Json draining = Json::array();
  for (const std::string& tenant :
       service.turns.lifecycle->draining_tenants()) {
    draining.push_back(NameOf(tenant));
  }
  const Json dump = {
      {"model", OfMessage(model)},
      {"status", OfMessage(status)},
      {"draining_tenants", draining},
      {"scheduler", OfScheduler(scheduler)},
      {"store", OfStore(service.turns.sessions->Report(kMostReported))}};
  return dump.dump();
}

namespace {

absl::StatusOr<std::string> ReadTenant(const std::string& field) {
  if (field.empty()) return kDefaultTenant;
  TXL_RETURN_IF_ERROR(CheckTenantField(field));
  return field;
}

// The session that a request names: administrators name others'.
template <typename Request>
absl::StatusOr<SessionName> ReadName(ApiCall& call) {
  TXL_ASSIGN_OR_RETURN(const auto request, call.Read<Request>());
  TXL_ASSIGN_OR_RETURN(const std::string tenant, ReadTenant(request->tenant()));
  TXL_RETURN_IF_ERROR(ValidateId("session_id", request->session_id()));
  const SessionName session(tenant, request->session_id());
  call.record().session = HashOf(session);
  return session;
}

v1::ListTenantSessionsResponse PageAnswer(const SessionPage& page) {
  v1::ListTenantSessionsResponse response;
  for (const SessionInfo& info : page.sessions) {
    v1::TenantSession* const session = response.add_sessions();
    WriteSession(info, session->mutable_session());
    session->set_in_slot(info.in_slot);
  }
  response.set_next_page_token(page.next_page_token);
  return response;
}

}  // namespace

absl::Status CheckTenantField(const std::string& tenant) {
  return ValidateId("tenant", tenant);  // tenants are named like sessions
}

void ListTenantSessions(const ServiceContext& service,
                        const std::shared_ptr<ApiCall>& call) {
  const auto read = call->Read<v1::ListTenantSessionsRequest>();
  if (!read.ok()) return call->End(read.status());
  const v1::ListTenantSessionsRequest& request = **read;
  const absl::StatusOr<std::string> tenant = ReadTenant(request.tenant());
  if (!tenant.ok()) return call->End(tenant.status());
  service.turns.sessions->ListStored(
      *tenant, request.page_size(), request.page_token(),
      [call](const absl::StatusOr<SessionPage>& page) {
        if (!page.ok()) return call->End(page.status());
        call->Answer(PageAnswer(*page));
      });
}

void MoveOutSession(const ServiceContext& service,
                    const std::shared_ptr<ApiCall>& call) {
  const auto name = ReadName<v1::MoveOutSessionRequest>(*call);
  if (!name.ok()) return call->End(name.status());
  const auto answer = [call](const absl::StatusOr<bool>& moved) {
    if (!moved.ok()) return call->End(moved.status());
    v1::MoveOutSessionResponse response;
    response.set_moved(*moved);
    call->Answer(response);
  };
  service.turns.sessions.With(*name, [&service, call, name = *name,
                                      answer](const absl::Status& status) {
    if (!status.ok()) return call->End(status);
    MoveOutState(service.turns, call, name, answer);
  });
}

void EndSession(const ServiceContext& service,
                const std::shared_ptr<ApiCall>& call) {
  const auto name = ReadName<v1::EndSessionRequest>(*call);
  if (!name.ok()) return call->End(name.status());
  service.turns.sessions.End(
      *name, [&service, call](const absl::StatusOr<bool>& served) {
        if (!served.ok()) return call->End(served.status());
        service.turns.sessions.WhenStored(
            AnswerIfStored(call, v1::EndSessionResponse()));
      });
}

}  // namespace txl
