#pragma once

// What the subcommands of `txl` share. Each adds itself to the program's
// command line; the one that was chosen sets *run, which the program calls
// after parsing. Its result is the exit code.

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/client.h"
#include "client/retrying_client.h"
#include "program/command_line.h"
#include "txl/v1/token.pb.h"

namespace txl::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kInterrupted = kExitInterrupted;

using Run = std::function<int()>;

void AddGenerateCommand(CLI::App& program, Run* run);
void AddChatCommand(CLI::App& program, Run* run);
void AddScoreCommand(CLI::App& program, Run* run);
void AddTokenizeCommand(CLI::App& program, Run* run);
void AddSessionsCommand(CLI::App& program, Run* run);
void AddStatusCommand(CLI::App& program, Run* run);
void AddBenchCommand(CLI::App& program, Run* run);
void AddAdminCommand(CLI::App& program, Run* run);

// Where the server is and how long a call may take.
struct ServerFlags {
  ChannelOptions channel;
  double timeout_seconds = 0;  // of each call; 0: none
  int attempts = 4;            // of a turn, in a row without anything new

  CallOptions call_options(Canceller* canceller = nullptr) const;
  RetryPolicy retry_policy() const;
};

// Times in seconds are at most so long, 31 years: what clocks can add.
inline constexpr double kMostSeconds = 1e9;
// That a time is one of these: ">= 0".
CLI::Validator Seconds();

// What ValidateAddress takes.
CLI::Validator ServerAddress();

// --server, --tls, --ca, --tls-cert, --tls-key, --key-file, --timeout.
void AddServerFlags(CLI::App& command, ServerFlags* flags);
// All these flags except --server.
void AddConnectionFlags(CLI::App& command, ServerFlags* flags);
// --attempts, for commands that run turns.
void AddRetryFlags(CLI::App& command, ServerFlags* flags);

// Checks of texts and of names, which are not empty, before they are sent:
// they are UTF-8.
CLI::Validator SentText();
CLI::Validator SentName();

// What a word of --unknown (program/command_line.h) is in a request;
// unspecified where it is empty.
v1::UnknownText UnknownTextOf(absl::string_view word);

// Calls `body` with a client; errors of its making are usage errors.
int WithClient(const ServerFlags& flags,
               const std::function<int(Client&)>& body);

// "txl: ..." on standard error.
void Complain(const std::string& message);
// Complains of a call's error. Returns kFailed.
int Fail(const absl::Status& status);
// Fail for a wrong command line. Returns kUsage.
int FailUsage(const std::string& message);
// Fail for an error of ReadInput: kUsage where the input is not a text.
int FailInput(const absl::Status& status);
// Fail after Ctrl-C. Returns kInterrupted.
int FailInterrupted();

}  // namespace txl::cli
