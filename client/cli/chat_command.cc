// txl chat: turn by turn in one session, at a terminal or from a file.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/call_error.h"
#include "client/cli/command.h"
#include "client/cli/generate_flags.h"
#include "client/cli/interrupt.h"
#include "client/cli/line_reader.h"
#include "client/cli/output.h"
#include "client/cli/turn_printer.h"
#include "client/retrying_client.h"

namespace txl::cli {
namespace {

constexpr char kCommands[] =
    "TEXT            feed the line (with its line end) and generate\n"
    "(empty line)    generate on from where the session is\n"
    "/new            start a new session\n"
    "/set FLAGS      change the turn's flags: /set --temperature 0.5\n"
    "/show           the session's id and position\n"
    "/help           this text\n"
    "/quit           leave (also Ctrl-D); Ctrl-C ends a turn\n";

struct Flags {
  ServerFlags server;
  GenerateFlags turn;
  std::string history;
  bool raw = false;
  bool keep = false;
};

// The history lives in the user's home unless a file is named.
std::string HistoryFile(const Flags& flags) {
  if (!flags.history.empty()) return flags.history;
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : absl::StrCat(home, "/.txl_history");
}

class Chat {
 public:
  Chat(Client* client, Flags flags)
      : client_(client), flags_(std::move(flags)) {}

  int Loop() {
    absl::Status status = Open(flags_.turn.session);
    if (!status.ok()) return Fail(status);
    std::unique_ptr<LineReader> reader =
        LineReader::Create("> ", HistoryFile(flags_));
    std::string line;
    while (true) {
      const LineReader::Result result = reader->Read(&line);
      if (result == LineReader::Result::kEnd) break;
      if (result == LineReader::Result::kInterrupted) continue;
      if (line == "/quit" || line == "/exit") break;
      if (absl::StartsWith(line, "/")) {
        Command(line);
      } else {
        Turn(line);
      }
    }
    Close();
    return failed_ ? kFailed : kDone;
  }

 private:
  // Makes the session, or goes on in the one that the user named.
  absl::Status Open(std::string id) {
    v1::CreateSessionRequest request;
    request.set_session_id(id);
    absl::StatusOr<v1::CreateSessionResponse> response =
        client_->CreateSession(request, flags_.server.call_options());
    if (response.ok()) {
      flags_.turn.session = response->session().session_id();
      ours_ = id.empty();
    } else if (response.status().code() != absl::StatusCode::kAlreadyExists) {
      return response.status();
    }
    return absl::OkStatus();
  }

  // A session without a name of the user's would be found by nobody.
  void Close() {
    if (!ours_ || flags_.keep) return;
    v1::DeleteSessionRequest request;
    request.set_session_id(flags_.turn.session);
    (void)client_->DeleteSession(request, flags_.server.call_options());
  }

  int64_t Position() {
    v1::GetSessionRequest request;
    request.set_session_id(flags_.turn.session);
    auto response = client_->GetSession(request, flags_.server.call_options());
    if (!response.ok()) Report(response.status());
    return response.ok() ? response->session().position() : 0;
  }

  void Report(const absl::Status& status) {
    Fail(status);
    failed_ = true;
  }

  void Command(const std::string& line) {
    if (line == "/new") {
      Close();
      absl::Status status = Open("");
      if (!status.ok()) Report(status);
    } else if (line == "/show") {
      WriteOut(absl::StrCat("session ", flags_.turn.session, ", position ",
                            Position(), "\n"));
    } else if (absl::StartsWith(line, "/set ")) {
      Set(line.substr(5));
    } else if (line == "/help") {
      WriteOut(kCommands);
    } else {
      Report(absl::InvalidArgumentError(
          absl::StrCat(line, ": unknown command; /help shows them")));
    }
  }

  void Set(const std::string& text) {
    GenerateFlags changed = flags_.turn;
    CLI::App parser;
    AddSamplingFlags(parser, &changed);
    try {
      parser.parse(text);
      flags_.turn = changed;
    } catch (const CLI::ParseError& error) {
      Report(absl::InvalidArgumentError(absl::StrCat("/set: ", error.what())));
    }
  }

  void Turn(const std::string& line) {
    GenerateFlags turn = flags_.turn;
    if (!line.empty()) turn.prompt = flags_.raw ? line : line + "\n";
    absl::StatusOr<v1::GenerateRequest> request = MakeGenerateRequest(turn);
    if (!request.ok()) return Report(request.status());
    Canceller canceller;
    TakeInterrupt();
    CancelOnInterrupt watch(&canceller);
    TurnPrinter printer(PrintMode::kText, false);
    const absl::Status status =
        RetryingClient(client_, flags_.server.retry_policy())
            .Generate(*std::move(request),
                      flags_.server.call_options(&canceller),
                      [&](const v1::GenerateResponse& response) {
                        WriteOut(printer.Format(response));
                      });
    WriteOut(printer.End());
    if (!status.ok() && !canceller.cancelled()) Report(status);
  }

  Client* client_;
  Flags flags_;
  bool ours_ = false;
  bool failed_ = false;
};

}  // namespace

void AddChatCommand(CLI::App& program, Run* run) {
  CLI::App* command = program.add_subcommand(
      "chat", "Feed lines and generate, turn by turn in one session");
  auto flags = std::make_shared<Flags>();
  AddServerFlags(*command, &flags->server);
  AddRetryFlags(*command, &flags->server);
  AddSamplingFlags(*command, &flags->turn);
  command->add_option("--session", flags->turn.session,
                      "session to continue or make [default: a new one that "
                      "ends with the chat]");
  command->add_option("--history", flags->history,
                      "file of past lines [default: ~/.txl_history]");
  command->add_flag("--raw", flags->raw,
                    "feed lines without their line end [default: off]");
  command->add_flag("--keep", flags->keep,
                    "keep the session afterwards [default: off]");
  command->footer(std::string("In the chat:\n") + kCommands);
  command->callback([run, flags] {
    *run = [flags] {
      return WithClient(flags->server, [&](Client& client) {
        return Chat(&client, *flags).Loop();
      });
    };
  });
}

}  // namespace txl::cli
