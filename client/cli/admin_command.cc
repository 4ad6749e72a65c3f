// txl admin: sessions of tenants, draining, quotas, files, log, dumps.

#include "client/cli/admin_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/command.h"
#include "client/cli/output.h"
#include "client/cli/session_files.h"
#include "program/flag_checks.h"

namespace txl::cli {
namespace {

struct AdminFlags {
  ServerFlags server;
  std::string tenant;
  std::string id;
  std::vector<std::string> ids;
  std::string level;
  bool undo = false;
  bool json = false;
};
using AdminFlagsPtr = std::shared_ptr<AdminFlags>;
using Verb = int (*)(const AdminClient&, const AdminFlags&);

// The answer as JSON where that was asked for, else `text`.
template <typename Response>
int Print(const Response& response, const AdminFlags& flags,
          const std::string& text) {
  WriteOut(flags.json ? ToJson(response) + "\n" : text);
  return kDone;
}

int ListAdmin(const AdminClient& client, const AdminFlags& flags) {
  v1::ListTenantSessionsRequest request;
  request.set_tenant(flags.tenant);
  do {
    const auto page = client.Call(&Admin::ListTenantSessions, request);
    if (!page.ok()) return Fail(page.status());
    if (!flags.json && request.page_token().empty()) {
      WriteOut(TenantSessionHeader());
    }
    for (const v1::TenantSession& session : page->sessions()) {
      Print(session, flags, FormatTenantSession(session));
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return kDone;
}

int MoveOut(const AdminClient& client, const AdminFlags& flags) {
  v1::MoveOutSessionRequest request;
  request.set_tenant(flags.tenant);
  request.set_session_id(flags.id);
  const auto moved = client.Call(&Admin::MoveOutSession, request);
  if (!moved.ok()) return Fail(moved.status());
  return Print(*moved, flags,
               moved->moved() ? "moved out\n" : "it was not in a slot\n");
}

int End(const AdminClient& client, const AdminFlags& flags) {
  int result = kDone;
  for (const std::string& id : flags.ids) {
    v1::EndSessionRequest request;
    request.set_tenant(flags.tenant);
    request.set_session_id(id);
    const auto ended = client.Call(&Admin::EndSession, request);
    if (!ended.ok()) result = Fail(ended.status());
  }
  return result;
}

int Drain(const AdminClient& client, const AdminFlags& flags) {
  if (!flags.tenant.empty()) {
    v1::DrainTenantRequest request;
    request.set_tenant(flags.tenant);
    request.set_undo(flags.undo);
    const auto drain = client.Call(&Admin::DrainTenant, request);
    if (!drain.ok()) return Fail(drain.status());
    return Print(*drain, flags, FormatDrain(flags.tenant, *drain));
  }
  const auto drain = client.Call(&Admin::DrainServer, v1::DrainServerRequest());
  if (!drain.ok()) return Fail(drain.status());
  return Print(*drain, flags, "the server drains\n");
}

int Quotas(const AdminClient& client, const AdminFlags& flags) {
  const auto quotas = client.Call(&Admin::GetQuotas, v1::GetQuotasRequest());
  if (!quotas.ok()) return Fail(quotas.status());
  return Print(*quotas, flags, FormatQuotas(*quotas));
}

// Fails where a file is wrong.
int Reload(const AdminClient& client, const AdminFlags& flags) {
  const auto reload = client.Call(&Admin::Reload, v1::ReloadRequest());
  if (!reload.ok()) return Fail(reload.status());
  Print(*reload, flags, FormatReload(*reload));
  for (const v1::ReloadedFile& file : reload->files()) {
    if (!file.error().empty()) return kFailed;
  }
  return kDone;
}

int SetLevel(const AdminClient& client, const AdminFlags& flags) {
  v1::SetLogLevelRequest request;
  request.set_level(flags.level);
  const auto set = client.Call(&Admin::SetLogLevel, request);
  if (!set.ok()) return Fail(set.status());
  return Print(*set, flags,
               absl::StrCat(set->level_before(), " -> ", flags.level, "\n"));
}

int WriteDump(const AdminClient& client, const AdminFlags&) {
  const auto dump = client.Call(&Admin::Dump, v1::DumpRequest());
  if (!dump.ok()) return Fail(dump.status());
  WriteOut(dump->json() + "\n");
  return kDone;
}

CLI::App* AddVerb(CLI::App& parent, const char* name, const char* help,
                  Verb verb, Run* run, const AdminFlagsPtr& flags) {
  CLI::App* command = parent.add_subcommand(name, help);
  command
      ->add_option("--admin", flags->server.channel.address,
                   "the server's --admin-listen, unix:PATH or HOST:PORT")
      ->type_name("ADDRESS")
      ->envname("TXL_ADMIN")
      ->check(ServerAddress())
      ->required();
  AddConnectionFlags(*command, &flags->server);
  command->callback([run, verb, flags] {
    *run = [verb, flags] {
      const auto client = AdminClient::Create(flags->server);
      if (!client.ok())
        return FailUsage(std::string(client.status().message()));
      return verb(*client, *flags);
    };
  });
  return command;
}

CLI::Option* AddTenant(CLI::App* command, const AdminFlagsPtr& flags,
                       const char* help) {
  return command->add_option("--tenant", flags->tenant, help)
      ->type_name("TENANT")
      ->check(SentName());
}

void AddAdminJson(CLI::App* command, const AdminFlagsPtr& flags) {
  command->add_flag("--json", flags->json,
                    "print lines of JSON [default: off]");
}

void AddSessionVerbs(CLI::App& admin, Run* run, const AdminFlagsPtr& flags) {
  constexpr char kTenantHelp[] = "tenant of the session [default: \"default\"]";
  CLI::App* sessions =
      admin.add_subcommand("sessions", "Sessions of any tenant");
  sessions->require_subcommand(1);

  CLI::App* list = AddVerb(*sessions, "list", "List a tenant's sessions",
                           ListAdmin, run, flags);
  AddTenant(list, flags, "tenant of the sessions [default: \"default\"]");
  AddAdminJson(list, flags);

  CLI::App* move_out = AddVerb(*sessions, "move-out",
                               "Move an idle session's memory off the device",
                               MoveOut, run, flags);
  move_out->add_option("SESSION", flags->id, "the session's id")
      ->required()
      ->check(SentName());
  AddTenant(move_out, flags, kTenantHelp);
  AddAdminJson(move_out, flags);

  CLI::App* end = AddVerb(*sessions, "end", "End sessions", End, run, flags);
  end->add_option("SESSION", flags->ids, "ids")->required()->check(SentName());
  AddTenant(end, flags, "tenant of the sessions [default: \"default\"]");
}

}  // namespace

void AddAdminCommand(CLI::App& program, Run* run) {
  CLI::App* admin = program.add_subcommand("admin", "Administer a server");
  admin->require_subcommand(1);
  auto flags = std::make_shared<AdminFlags>();
  flags->server.channel.address.clear();
  flags->server.timeout_seconds = 10;  // nothing of it takes long

  AddSessionVerbs(*admin, run, flags);

  CLI::App* drain = AddVerb(*admin, "drain",
                            "Drain and end the server, as SIGTERM does, or "
                            "refuse new turns of a tenant",
                            Drain, run, flags);
  CLI::Option* tenant = AddTenant(
      drain, flags,
      "tenant whose new turns are refused [default: the server ends]");
  drain
      ->add_flag("--undo", flags->undo,
                 "accept the tenant's turns again [default: off]")
      ->needs(tenant);
  AddAdminJson(drain, flags);

  AddAdminJson(
      AddVerb(*admin, "quotas",
              "Show the quotas of tenants and how much of them is used", Quotas,
              run, flags),
      flags);
  AddAdminJson(
      AddVerb(*admin, "reload", "Read keys, tenants and certificates again",
              Reload, run, flags),
      flags);

  CLI::App* level =
      AddVerb(*admin, "log-level", "Set the log level", SetLevel, run, flags);
  level->add_option("LEVEL", flags->level, "lowest level that is logged")
      ->required()
      ->transform(OneOf({"debug", "info", "warning", "error"}));
  AddAdminJson(level, flags);

  AddVerb(*admin, "dump",
          "Print the state of scheduler and sessions as JSON, for a bug report",
          WriteDump, run, flags);
}

namespace {

std::string FormatQuota(const v1::Quota& quota) {
  if (!quota.has_limit() && !quota.has_used()) return "-";
  return absl::StrCat(quota.has_used() ? absl::StrCat(quota.used()) : "-", "/",
                      quota.has_limit() ? absl::StrCat(quota.limit()) : "-");
}

std::string FormatLongest(const v1::TenantQuotas& quotas) {
  if (!quotas.has_longest_turn()) return "-";
  const google::protobuf::Duration& longest = quotas.longest_turn();
  return absl::FormatDuration(absl::Seconds(longest.seconds()) +
                              absl::Nanoseconds(longest.nanos()));
}

using Table = std::vector<std::vector<std::string>>;  // rows of cells

// Columns as wide as they have to be.
std::string FormatTable(const Table& table) {
  std::vector<size_t> widths(table.front().size());
  for (const auto& row : table) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : table) {
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      absl::StrAppendFormat(&text, "%-*s  ", widths[i], row[i]);
    }
    absl::StrAppend(&text, row.back(), "\n");
  }
  return text;
}

}  // namespace

std::string TenantSessionHeader() {
  return absl::StrCat("SLOT ", kSessionHeader);
}

std::string FormatTenantSession(const v1::TenantSession& session) {
  return absl::StrCat(session.in_slot() ? "yes  " : "no   ",
                      FormatSession(session.session()));
}

std::string FormatQuotas(const v1::GetQuotasResponse& quotas) {
  Table table = {{"TENANT", "STATE", "WEIGHT", "TURNS", "SESSIONS", "BYTES",
                  "CALLS/S", "TOKENS_IN/MIN", "TOKENS_OUT/MIN",
                  "LONGEST_TURN"}};
  for (const v1::TenantQuotas& tenant : quotas.tenants()) {
    table.push_back(
        {tenant.tenant(), tenant.draining() ? "draining" : "serving",
         absl::StrCat(tenant.weight()), FormatQuota(tenant.turns()),
         FormatQuota(tenant.sessions()), FormatQuota(tenant.bytes()),
         FormatQuota(tenant.calls_per_second()),
         FormatQuota(tenant.tokens_in_per_minute()),
         FormatQuota(tenant.tokens_out_per_minute()), FormatLongest(tenant)});
  }
  return FormatTable(table);
}

std::string FormatReload(const v1::ReloadResponse& reload) {
  if (reload.files().empty()) return "the server has no such files\n";
  std::string text;
  for (const v1::ReloadedFile& file : reload.files()) {
    absl::StrAppend(&text, file.setting(), " ", file.path(), ": ",
                    file.error().empty() ? "taken" : file.error(), "\n");
  }
  return text;
}

std::string FormatDrain(const std::string& tenant,
                        const v1::DrainTenantResponse& drain) {
  std::string text =
      absl::StrCat("draining: ",
                   drain.draining_tenants().empty()
                       ? "no tenant"
                       : absl::StrJoin(drain.draining_tenants(), ", "),
                   "\n");
  if (drain.has_turns()) {
    absl::StrAppend(&text, "turns of ", tenant, ": ", drain.turns(), "\n");
  }
  return text;
}

}  // namespace txl::cli
