#include "server/api/admin_service.h"

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "model/base/status_macros.h"
#include "server/api/admin_dump.h"
#include "server/api/admin_sessions.h"
#include "server/api/convert_output.h"
#include "server/api/unary_call.h"
#include "server/base/error.h"
#include "server/base/line_file.h"
#include "server/base/log.h"
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
    const auto kept = service.store->tenant_uses();
    for (const TenantUse& use :
         service.tenants->Use(service.clock->Monotonic())) {
      const auto of_tenant = kept.find(use.tenant);
      WriteQuotas(use,
                  of_tenant == kept.end() ? SessionUse() : of_tenant->second,
                  &all[use.tenant]);
    }
  }
  for (const std::string& tenant : service.lifecycle->draining_tenants()) {
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
  service.lifecycle->SetTenantDraining(tenant, !request.undo());
  LogAndAudit(service.audit, LogSeverity::kInfo, "drain_tenant",
              {{"tenant", tenant}, {"draining", !request.undo()}});
  if (service.tenants != nullptr) {
    const absl::Duration now = service.clock->Monotonic();
    response->set_turns(service.tenants->Find(tenant, now)->Use(now).turns);
  }
  for (const std::string& name : service.lifecycle->draining_tenants()) {
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
    service_.scheduler->Report([self = shared_from_this()](
                                   SchedulerReport report) {
      const auto held = std::make_shared<SchedulerReport>(std::move(report));
      self->service_.callbacks->Run(
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

void ChangeLogLevel(const ServiceContext&,
                    const std::shared_ptr<ApiCall>& call) {
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
  v1::DumpRequest request;
  const absl::Status status = call->Parse(&request);
  if (!status.ok()) return call->End(status);
  std::make_shared<DumpRun>(service, call)->Start();
}

}  // namespace txl
