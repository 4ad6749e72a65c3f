// txl admin: sessions of tenants, draining, quotas, files, log, dumps.

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "client/cli/admin_call.h"
#include "client/cli/admin_text.h"
#include "client/cli/command.h"
#include "client/cli/output.h"
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
using FlagsPtr = std::shared_ptr<AdminFlags>;
using Verb = int (*)(const AdminClient&, const AdminFlags&);

// The answer as JSON where that was asked for, else `text`.
template <typename Response>
int Print(const Response& response, const AdminFlags& flags,
          const std::string& text) {
  WriteOut(flags.json ? ToJson(response) + "\n" : text);
  return kDone;
}

int List(const AdminClient& client, const AdminFlags& flags) {
  if (!flags.json) WriteOut(TenantSessionHeader());
  v1::ListTenantSessionsRequest request;
  request.set_tenant(flags.tenant);
  do {
    const auto page = client.Call(&Admin::ListTenantSessions, request);
    if (!page.ok()) return Fail(page.status());
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
               moved->moved() ? "moved out\n" : "it was in no slot\n");
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
                  Verb verb, Run* run, const FlagsPtr& flags) {
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

CLI::Option* AddTenant(CLI::App* command, const FlagsPtr& flags,
                       const char* help) {
  return command->add_option("--tenant", flags->tenant, help)
      ->type_name("TENANT")
      ->check(SentName());
}

void AddJson(CLI::App* command, const FlagsPtr& flags) {
  command->add_flag("--json", flags->json,
                    "print lines of JSON [default: off]");
}

void AddSessionVerbs(CLI::App& admin, Run* run, const FlagsPtr& flags) {
  constexpr char kWhose[] = "whose it is [default: the tenant \"default\"]";
  CLI::App* sessions =
      admin.add_subcommand("sessions", "Sessions of any tenant");
  sessions->require_subcommand(1);

  CLI::App* list =
      AddVerb(*sessions, "list", "List a tenant's sessions", List, run, flags);
  AddTenant(list, flags, "whose they are [default: the tenant \"default\"]");
  AddJson(list, flags);

  CLI::App* move_out = AddVerb(*sessions, "move-out",
                               "Move an idle session's memory off the device",
                               MoveOut, run, flags);
  move_out->add_option("SESSION", flags->id, "the session's id")
      ->required()
      ->check(SentName());
  AddTenant(move_out, flags, kWhose);
  AddJson(move_out, flags);

  CLI::App* end = AddVerb(*sessions, "end", "End sessions", End, run, flags);
  end->add_option("SESSION", flags->ids, "ids")->required()->check(SentName());
  AddTenant(end, flags, "whose they are [default: the tenant \"default\"]");
}

}  // namespace

void AddAdminCommand(CLI::App& program, Run* run) {
  CLI::App* admin = program.add_subcommand("admin", "Administer a server");
  admin->require_subcommand(1);
  auto flags = std::make_shared<AdminFlags>();
  flags->server.channel.address.clear();
  flags->server.timeout_seconds = 10;  // nothing of it takes long

  AddSessionVerbs(*admin, run, flags);

  CLI::App* drain =
      AddVerb(*admin, "drain",
              "End the server after its turns, as SIGTERM does, or "
              "refuse a tenant's new turns",
              Drain, run, flags);
  CLI::Option* tenant = AddTenant(
      drain, flags, "whose new turns to refuse [default: the server ends]");
  drain
      ->add_flag("--undo", flags->undo,
                 "take the tenant's turns on again [default: off]")
      ->needs(tenant);
  AddJson(drain, flags);

  AddJson(AddVerb(*admin, "quotas", "Show what tenants may take and have taken",
                  Quotas, run, flags),
          flags);
  AddJson(AddVerb(*admin, "reload", "Read keys, tenants and certificates again",
                  Reload, run, flags),
          flags);

  CLI::App* level = AddVerb(*admin, "log-level", "Set which lines the log has",
                            SetLevel, run, flags);
  level->add_option("LEVEL", flags->level, "the least severe line")
      ->required()
      ->transform(OneOf({"debug", "info", "warning", "error"}));
  AddJson(level, flags);

  AddVerb(*admin, "dump",
          "Print the state of scheduler and sessions as JSON, for a report of "
          "a bug",
          WriteDump, run, flags);
}

}  // namespace txl::cli
