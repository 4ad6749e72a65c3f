// txl sessions: list, show, create, delete, fork, rewind, export, import.

#include <CLI/CLI.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/command.h"
#include "client/cli/output.h"
#include "client/cli/session_files.h"
#include "program/flag_checks.h"

namespace txl::cli {
namespace {

struct SessionsFlags {
  ServerFlags server;
  std::string id;
  std::vector<std::string> ids;
  double ttl_seconds = 0;
  std::optional<int64_t> at;
  int64_t to = 0;
  std::string as;
  std::string file;
  bool state = false;
  bool tokens = false;
  bool json = false;
};
using FlagsPtr = std::shared_ptr<SessionsFlags>;

void Print(const v1::Session& session, const SessionsFlags& flags) {
  WriteOut(flags.json ? ToJson(session) + "\n"
                      : absl::StrCat(kSessionHeader, FormatSession(session)));
}

int List(Client& client, const SessionsFlags& flags) {
  v1::ListSessionsRequest request;
  do {
    const absl::StatusOr<v1::ListSessionsResponse> page =
        client.ListSessions(request, flags.server.call_options());
    if (!page.ok()) return Fail(page.status());
    if (!flags.json && request.page_token().empty()) WriteOut(kSessionHeader);
    for (const v1::Session& session : page->sessions()) {
      WriteOut(flags.json ? ToJson(session) + "\n" : FormatSession(session));
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return kDone;
}

// The session; with --tokens all its pages as one.
absl::StatusOr<v1::GetSessionResponse> ReadSession(Client& client,
                                                   const SessionsFlags& flags) {
  v1::GetSessionRequest request;
  request.set_session_id(flags.id);
  request.set_include_tokens(flags.tokens);
  v1::GetSessionResponse whole;
  while (true) {
    const absl::StatusOr<v1::GetSessionResponse> page =
        client.GetSession(request, flags.server.call_options());
    if (!page.ok()) return page.status();
    whole.mutable_token_ids()->MergeFrom(page->token_ids());
    whole.mutable_text()->append(page->text());
    *whole.mutable_session() = page->session();
    if (page->next_page_token().empty()) return whole;
    request.set_page_token(page->next_page_token());
  }
}

int Show(Client& client, const SessionsFlags& flags) {
  const absl::StatusOr<v1::GetSessionResponse> response =
      ReadSession(client, flags);
  if (!response.ok()) return Fail(response.status());
  if (flags.json) {
    WriteOut(ToJson(*response) + "\n");
    return kDone;
  }
  Print(response->session(), flags);
  if (flags.tokens) {
    WriteOut(absl::StrCat("tokens ", absl::StrJoin(response->token_ids(), ","),
                          "\ntext\n", response->text(), "\n"));
  }
  return kDone;
}

// What was made: its id, or all of it.
int PrintMade(const v1::Session& session, const SessionsFlags& flags) {
  WriteOut(flags.json ? ToJson(session) + "\n" : session.session_id() + "\n");
  return kDone;
}

int Create(Client& client, const SessionsFlags& flags) {
  v1::CreateSessionRequest request;
  request.set_session_id(flags.id);
  if (flags.ttl_seconds > 0) {
    const absl::Duration ttl = absl::Seconds(flags.ttl_seconds);
    const int64_t seconds = absl::ToInt64Seconds(ttl);
    request.mutable_ttl()->set_seconds(seconds);
    request.mutable_ttl()->set_nanos(static_cast<int32_t>(
        absl::ToInt64Nanoseconds(ttl - absl::Seconds(seconds))));
  }
  const absl::StatusOr<v1::CreateSessionResponse> response =
      client.CreateSession(request, flags.server.call_options());
  if (!response.ok()) return Fail(response.status());
  return PrintMade(response->session(), flags);
}

int Delete(Client& client, const SessionsFlags& flags) {
  int result = kDone;
  for (const std::string& id : flags.ids) {
    v1::DeleteSessionRequest request;
    request.set_session_id(id);
    const absl::Status status =
        client.DeleteSession(request, flags.server.call_options()).status();
    if (!status.ok()) result = Fail(status);
  }
  return result;
}

int Fork(Client& client, const SessionsFlags& flags) {
  v1::ForkSessionRequest request;
  request.set_session_id(flags.id);
  request.set_new_session_id(flags.as);
  if (flags.at.has_value()) request.set_position(*flags.at);
  const absl::StatusOr<v1::ForkSessionResponse> response =
      client.ForkSession(request, flags.server.call_options());
  if (!response.ok()) return Fail(response.status());
  return PrintMade(response->session(), flags);
}

int Rewind(Client& client, const SessionsFlags& flags) {
  v1::RewindSessionRequest request;
  request.set_session_id(flags.id);
  request.set_position(flags.to);
  const absl::StatusOr<v1::RewindSessionResponse> response =
      client.RewindSession(request, flags.server.call_options());
  if (!response.ok()) return Fail(response.status());
  if (flags.json) WriteOut(ToJson(response->session()) + "\n");
  return kDone;
}

int Export(Client& client, const SessionsFlags& flags) {
  v1::ExportSessionRequest request;
  request.set_session_id(flags.id);
  request.set_include_state(flags.state);
  const absl::Status status =
      SaveSession(client, request, flags.server.call_options(), flags.file);
  return status.ok() ? kDone : Fail(status);
}

int Import(Client& client, const SessionsFlags& flags) {
  v1::ImportSessionRequest request;
  request.set_session_id(flags.as);
  const absl::StatusOr<v1::Session> session =
      LoadSession(client, request, flags.server.call_options(), flags.file);
  if (!session.ok()) return Fail(session.status());
  return PrintMade(*session, flags);
}

CLI::App* AddVerb(CLI::App& parent, const char* name, const char* help,
                  int (*verb)(Client&, const SessionsFlags&), Run* run,
                  const FlagsPtr& flags) {
  CLI::App* command = parent.add_subcommand(name, help);
  AddServerFlags(*command, &flags->server);
  command->callback([run, verb, flags] {
    *run = [verb, flags] {
      return WithClient(flags->server,
                        [&](Client& client) { return verb(client, *flags); });
    };
  });
  return command;
}

void AddJson(CLI::App* command, const FlagsPtr& flags) {
  command->add_flag("--json", flags->json,
                    "print lines of JSON [default: off]");
}

void AddBranchVerbs(CLI::App& sessions, Run* run, const FlagsPtr& flags) {
  CLI::App* fork =
      AddVerb(sessions, "fork",
              "Create a session that begins like another one, print its id",
              Fork, run, flags);
  fork->add_option("SESSION", flags->id, "the session's id")
      ->required()
      ->check(SentName());
  fork->add_option("--at", flags->at,
                   "tokens that the new session holds [default: all]")
      ->check(AtLeast(0));
  fork->add_option("--as", flags->as,
                   "the new session's id [default: chosen by the server]")
      ->check(SentName());
  AddJson(fork, flags);

  CLI::App* rewind =
      AddVerb(sessions, "rewind", "Return a session to an earlier position",
              Rewind, run, flags);
  rewind->add_option("SESSION", flags->id, "the session's id")
      ->required()
      ->check(SentName());
  rewind->add_option("--to", flags->to, "tokens that it holds afterwards")
      ->required()
      ->check(AtLeast(0));
  AddJson(rewind, flags);
}

void AddFileVerbs(CLI::App& sessions, Run* run, const FlagsPtr& flags) {
  CLI::App* save = AddVerb(sessions, "export", "Write a session to a file",
                           Export, run, flags);
  save->add_option("SESSION", flags->id, "the session's id")
      ->required()
      ->check(SentName());
  save->add_option("FILE", flags->file, "the file; -: standard output")
      ->required();
  save->add_flag(
      "--state", flags->state,
      "include the segment memory, if the server has a key [default: off]");

  CLI::App* load =
      AddVerb(sessions, "import",
              "Create a session from an exported file, print its id", Import,
              run, flags);
  load->add_option("FILE", flags->file, "the file; -: standard input")
      ->required();
  load->add_option("--as", flags->as,
                   "the session's id [default: chosen by the server]")
      ->check(SentName());
  AddJson(load, flags);
}

}  // namespace

void AddSessionsCommand(CLI::App& program, Run* run) {
  CLI::App* sessions =
      program.add_subcommand("sessions", "List and manage sessions");
  sessions->require_subcommand(1);
  auto flags = std::make_shared<SessionsFlags>();

  AddJson(AddVerb(*sessions, "list", "List all sessions", List, run, flags),
          flags);

  CLI::App* show =
      AddVerb(*sessions, "show", "Show a session", Show, run, flags);
  show->add_option("SESSION", flags->id, "the session's id")
      ->required()
      ->check(SentName());
  show->add_flag("--tokens", flags->tokens,
                 "also print its token ids and text [default: off]");
  AddJson(show, flags);

  CLI::App* create =
      AddVerb(*sessions, "create", "Create a session, print its id", Create,
              run, flags);
  create->add_option("SESSION", flags->id, "id [default: chosen by the server]")
      ->check(SentName());
  create
      ->add_option("--ttl", flags->ttl_seconds,
                   "life after the last use in seconds, 0: the server's choice")
      ->check(Seconds())
      ->capture_default_str();
  AddJson(create, flags);

  CLI::App* remove =
      AddVerb(*sessions, "delete", "Delete sessions", Delete, run, flags);
  remove->add_option("SESSION", flags->ids, "ids")
      ->required()
      ->check(SentName());

  AddBranchVerbs(*sessions, run, flags);
  AddFileVerbs(*sessions, run, flags);
}

}  // namespace txl::cli
