// txl chat: turn by turn in one session, at a terminal or from a file.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/call_error.h"
#include "client/cli/command.h"
#include "client/cli/generate_flags.h"
#include "client/cli/line_reader.h"
#include "client/cli/long_text.h"
#include "client/cli/output.h"
#include "client/cli/session_files.h"
#include "client/text_check.h"
#include "program/command_line.h"
#include "program/nearest_name.h"

namespace txl::cli {
namespace {

constexpr char kCommands[] =
    "TEXT            feed the line (with its line end) and generate\n"
    "(empty line)    generate from where the session is\n"
    "\"\"\"             feed the lines up to the next \"\"\" together; what "
    "is\n"
    "                pasted is fed together anyway\n"
    "/new            start a new session\n"
    "/undo           undo the last turn, then the one before it\n"
    "/fork [NAME]    continue in a copy of this session\n"
    "/save FILE      write the session to a file\n"
    "/load FILE      continue in a new session from such a file\n"
    "/set            show the current settings\n"
    "/set FLAGS      change them: /set --temperature 0.5\n"
    "/show           show the session's id and position\n"
    "/help           show this text\n"
    "/quit           leave (also Ctrl-D); Ctrl-C ends a turn\n";

struct ChatFlags {
  ServerFlags server;
  GenerateFlags turn;
  std::string history;
  bool raw = false;
  bool keep = false;
};

constexpr char kBlock[] = "\"\"\"";  // begins and ends it

// What the commands of a chat take; "[FLAGS]" need not be there.
constexpr std::pair<absl::string_view, absl::string_view> kForms[] = {
    {"/new", ""},      {"/undo", ""},     {"/fork", "[NAME]"},
    {"/save", "FILE"}, {"/load", "FILE"}, {"/set", "[FLAGS]"},
    {"/show", ""},     {"/help", ""},     {"/quit", ""},
    {"/exit", ""},
};

// That a command line is of these forms.
absl::Status CheckForm(absl::string_view name, absl::string_view argument) {
  std::vector<std::string> names;
  for (const auto& [known, takes] : kForms) {
    names.emplace_back(known);
    if (known != name) continue;
    if (takes.empty() && !argument.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": takes nothing, not \"", argument, "\""));
    }
    if (takes == "FILE" && argument.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": takes a file: ", name, " FILE"));
    }
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": unknown command",
                   DidYouMean(std::string(name), names), "; /help shows them"));
}

// The history lives in the user's home unless a file is named.
std::string HistoryFile(const ChatFlags& flags) {
  if (!flags.history.empty()) return flags.history;
  const char* home = std::getenv("HOME");
  return home == nullptr ? "" : absl::StrCat(home, "/.txl_history");
}

class Chat {
 public:
  Chat(Client* client, ChatFlags flags)
      : client_(client), flags_(std::move(flags)) {}

  int Loop() {
    absl::Status status = Open(flags_.turn.session);
    if (!status.ok()) return Fail(status);
    std::unique_ptr<LineReader> reader =
        LineReader::Create(HistoryFile(flags_));
    if (reader->is_terminal()) Greet();
    std::string line;
    while (true) {
      const LineReader::Result result = ReadMessage(*reader, &line);
      if (result == LineReader::Result::kEnd || !OutputStatus().ok()) break;
      if (result == LineReader::Result::kInterrupted) continue;
      if (absl::StartsWith(line, "/")) {
        if (!Command(line)) break;
      } else {
        Turn(line);
      }
    }
    Close();
    return failed_ ? kFailed : kDone;
  }

 private:
  void Greet() {
    const auto model = client_->GetModel(flags_.server.call_options());
    WriteOut(absl::StrCat(
        model.ok() ? absl::StrCat("Model ", model->name(), ". ") : "",
        "What you type is continued; /help shows more, /quit leaves.\n"));
  }

  // A line, or the lines of a block.
  LineReader::Result ReadMessage(LineReader& reader, std::string* message) {
    LineReader::Result result = reader.Read("> ", message);
    if (result != LineReader::Result::kLine || *message != kBlock) {
      return result;
    }
    message->clear();
    std::string line;
    while ((result = reader.Read(". ", &line)) == LineReader::Result::kLine) {
      if (line == kBlock) return result;
      absl::StrAppend(message, message->empty() ? "" : "\n", line);
    }
    if (result == LineReader::Result::kEnd) {
      Report(absl::InvalidArgumentError(
          absl::StrCat("the block that begins with ", kBlock,
                       " is not closed; it was not sent")));
    }
    return result;
  }

  // Makes the session, or goes on in the one that the user named.
  absl::Status Open(std::string id) {
    v1::CreateSessionRequest request;
    request.set_session_id(id);
    absl::StatusOr<v1::CreateSessionResponse> response =
        client_->CreateSession(request, flags_.server.call_options());
    if (response.ok()) {
      GoOnIn(response->session(), id.empty());
      starts_.clear();
    } else if (response.status().code() != absl::StatusCode::kAlreadyExists) {
      return response.status();
    }
    return absl::OkStatus();
  }

  // `unnamed`: by the user.
  void GoOnIn(const v1::Session& session, bool unnamed) {
    flags_.turn.session = session.session_id();
    if (unnamed) ours_.push_back(session.session_id());
  }

  // Sessions without a name of the user's would be found by nobody.
  void Close() {
    if (flags_.keep) return;
    for (const std::string& id : std::exchange(ours_, {})) {
      v1::DeleteSessionRequest request;
      request.set_session_id(id);
      (void)client_->DeleteSession(request, flags_.server.call_options());
    }
  }

  absl::StatusOr<v1::Session> Session() {
    v1::GetSessionRequest request;
    request.set_session_id(flags_.turn.session);
    auto response = client_->GetSession(request, flags_.server.call_options());
    if (!response.ok()) return response.status();
    return std::move(*response->mutable_session());
  }

  void Show() {
    const absl::StatusOr<v1::Session> session = Session();
    if (!session.ok()) return Report(session.status());
    WriteOut(absl::StrCat("session ", session->session_id(), ", position ",
                          session->position(), "\n"));
  }

  // Where the last turn began that the session still holds: one of this chat,
  // else the one that the server knows. -1: none.
  int64_t LastStart(const v1::Session& session) {
    while (!starts_.empty() && starts_.back() >= session.position()) {
      starts_.pop_back();
    }
    if (!starts_.empty()) return starts_.back();
    const v1::LastTurn& last = session.last_turn();
    const bool is_turn = last.prompt_tokens() + last.generated_tokens() > 0;
    return is_turn && last.start_position() < session.position()
               ? last.start_position()
               : -1;
  }

  void Undo() {
    const absl::StatusOr<v1::Session> session = Session();
    if (!session.ok()) return Report(session.status());
    const int64_t start = LastStart(*session);
    if (start < 0) {
      return Report(absl::NotFoundError("/undo: no turn to undo"));
    }
    v1::RewindSessionRequest request;
    request.set_session_id(flags_.turn.session);
    request.set_position(start);
    request.set_expected_position(session->position());
    const absl::Status status =
        client_->RewindSession(request, flags_.server.call_options()).status();
    if (!status.ok()) return Report(status);
    WriteOut(absl::StrCat("position ", start, "\n"));
  }

  void Fork(const std::string& name) {
    v1::ForkSessionRequest request;
    request.set_session_id(flags_.turn.session);
    request.set_new_session_id(name);
    const absl::StatusOr<v1::ForkSessionResponse> response =
        client_->ForkSession(request, flags_.server.call_options());
    if (!response.ok()) return Report(response.status());
    GoOnIn(response->session(), name.empty());
    WriteOut(absl::StrCat("session ", flags_.turn.session, "\n"));
  }

  void Save(const std::string& file) {
    Canceller canceller;
    TakeInterrupt();
    CancelOnInterrupt watch(&canceller);
    v1::ExportSessionRequest request;
    request.set_session_id(flags_.turn.session);
    const absl::Status status = SaveSession(
        *client_, request, flags_.server.call_options(&canceller), file);
    if (!status.ok()) Report(status);
  }

  void Load(const std::string& file) {
    Canceller canceller;
    TakeInterrupt();
    CancelOnInterrupt watch(&canceller);
    const absl::StatusOr<v1::Session> session =
        LoadSession(*client_, v1::ImportSessionRequest(),
                    flags_.server.call_options(&canceller), file);
    if (!session.ok()) return Report(session.status());
    GoOnIn(*session, true);
    starts_.clear();
    Show();
  }

  void Report(const absl::Status& status) {
    Fail(status);
    failed_ = true;
    // The server forgets: at its end, or after a session's time.
    if (absl::StartsWith(GetCallError(status).reason, "SESSION_") &&
        absl::IsNotFound(status)) {
      std::fputs("txl: /new starts a new session\n", stderr);
    }
  }

  // False: the chat ends.
  bool Command(const std::string& line) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    const std::string& name = parts.first;
    const std::string argument(absl::StripAsciiWhitespace(parts.second));
    absl::Status status = CheckForm(name, argument);
    if (!status.ok()) {
      Report(status);
    } else if (name == "/new") {
      Close();
      status = Open("");
      if (!status.ok()) Report(status);
    } else if (name == "/show") {
      Show();
    } else if (name == "/undo") {
      Undo();
    } else if (name == "/fork") {
      Fork(argument);
    } else if (name == "/save") {
      Save(argument);
    } else if (name == "/load") {
      Load(argument);
    } else if (name == "/set") {
      argument.empty() ? ShowSettings() : Set(argument);
    } else if (name == "/help") {
      WriteOut(kCommands);
    } else {  // /quit or /exit
      return false;
    }
    return true;
  }

  // The server's settings with those of this chat over them.
  void ShowSettings() {
    const auto request = MakeGenerateRequest(flags_.turn);
    const auto model = client_->GetModel(flags_.server.call_options());
    if (!request.ok()) return Report(request.status());
    if (!model.ok()) return Report(model.status());
    v1::SamplingParams sampling = model->default_sampling();
    sampling.MergeFrom(request->sampling());
    v1::StopConditions stop = model->default_stop();
    if (request->stop().stop_texts_size() > 0) stop.clear_stop_texts();
    stop.MergeFrom(request->stop());
    const std::string& unknown = flags_.turn.unknown;
    WriteOut(absl::StrCat(
        sampling.DebugString(), stop.DebugString(),
        unknown.empty() ? "" : absl::StrCat("unknown: ", unknown, "\n")));
  }

  void Set(const std::string& text) {
    GenerateFlags changed = flags_.turn;
    CLI::App parser;
    AddSamplingFlags(parser, &changed);
    AddUnknownFlag(parser, &changed.unknown);
    ReadPlainNumbers(parser);
    try {
      parser.parse(text);
      flags_.turn = changed;
    } catch (const CLI::ParseError& error) {
      Report(absl::InvalidArgumentError(absl::StrCat("/set: ", error.what())));
    }
  }

  void Turn(const std::string& line) {
    const absl::Status text = CheckUtf8("the line", line);
    if (!text.ok()) return Report(text);
    GenerateFlags turn = flags_.turn;
    if (!line.empty()) turn.prompt = flags_.raw ? line : line + "\n";
    absl::StatusOr<v1::GenerateRequest> request = MakeGenerateRequest(turn);
    if (!request.ok()) return Report(request.status());
    // A turn that cannot begin says why below.
    const absl::StatusOr<v1::Session> before = Session();
    if (before.ok()) starts_.push_back(before->position());
    Canceller canceller;
    TakeInterrupt();
    CancelOnInterrupt watch(&canceller);
    TurnPrinter printer(PrintMode::kText, false);
    const absl::Status status =
        GenerateAfterPrompt(*client_, flags_.server.retry_policy(), *request,
                            flags_.server.call_options(&canceller),
                            [&](const v1::GenerateResponse& response) {
                              if (!WriteOut(printer.Format(response)))
                                canceller.Cancel();
                            });
    WriteOut(printer.End());
    if (!status.ok() && !canceller.cancelled()) Report(status);
  }

  Client* client_;
  ChatFlags flags_;
  std::vector<std::string> ours_;  // sessions that end with the chat
  std::vector<int64_t> starts_;    // of this chat's turns, oldest first
  bool failed_ = false;
};

}  // namespace

void AddChatCommand(CLI::App& program, Run* run) {
  CLI::App* command = program.add_subcommand(
      "chat", "Type lines and get continuations, turn by turn in one session");
  auto flags = std::make_shared<ChatFlags>();
  AddServerFlags(*command, &flags->server);
  AddRetryFlags(*command, &flags->server);
  AddSamplingFlags(*command, &flags->turn);
  AddUnknownFlag(*command, &flags->turn.unknown);
  command
      ->add_option("--session", flags->turn.session,
                   "session to continue or create [default: a new one that "
                   "ends with the chat]")
      ->check(SentName());
  command
      ->add_option("--history", flags->history,
                   "file of past lines [default: ~/.txl_history]")
      ->type_name("FILE");
  command->add_flag("--raw", flags->raw,
                    "feed lines without a line end [default: off]");
  command->add_flag("--keep", flags->keep,
                    "keep the session after the chat [default: off]");
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
