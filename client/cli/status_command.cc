// txl status: what a server is and does.

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/call_error.h"
#include "client/channel.h"
#include "client/cli/command.h"
#include "client/cli/line_reader.h"
#include "client/cli/output.h"
#include "client/cli/status_text.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "program/flag_checks.h"

namespace txl::cli {
namespace {

struct StatusFlags {
  ServerFlags server;
  bool check = false;
  bool json = false;
  std::optional<double> watch_seconds;  // absent: once
};

constexpr double kDefaultPeriod = 2;
constexpr double kShortestPeriod = 0.1;
constexpr double kLongestPeriod = 86400;

// Cursor to the corner, and nothing below it.
constexpr char kClearScreen[] = "\x1b[H\x1b[2J";

// What probes ask: silent, the exit code says it. By gRPC's health service,
// which wants nobody's key.
int Check(const ServerFlags& flags) {
  const auto channel = OpenChannel(flags.channel);
  if (!channel.ok()) return FailUsage(std::string(channel.status().message()));
  grpc::ClientContext context;
  if (flags.timeout_seconds > 0) {
    context.set_deadline(
        absl::ToChronoTime(absl::Now() + absl::Seconds(flags.timeout_seconds)));
  }
  namespace health = grpc::health::v1;
  health::HealthCheckResponse answer;
  const grpc::Status status = health::Health::NewStub(*channel)->Check(
      &context, health::HealthCheckRequest(), &answer);
  if (!status.ok()) return Fail(FromGrpcStatus(status));
  if (answer.status() == health::HealthCheckResponse::SERVING) return kDone;
  return Fail(absl::UnavailableError("the server is not serving"));
}

// True: there was an interrupt.
bool WaitForInterrupt(double seconds) {
  pollfd fd = {InterruptFd(), POLLIN, 0};
  (void)poll(&fd, 1, static_cast<int>(seconds * 1000));
  return TakeInterrupt();
}

// Goes on until an interrupt, or until nobody reads what it says.
int Watch(Client& client, const StatusFlags& flags) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  v1::GetServerStatusResponse before;
  do {
    Canceller canceller;
    absl::StatusOr<v1::GetServerStatusResponse> status;
    {
      const CancelOnInterrupt watch(&canceller);
      status = client.GetServerStatus(flags.server.call_options(&canceller));
    }
    if (canceller.cancelled()) return kInterrupted;
    if (!status.ok()) return Fail(status.status());
    const StatusRates rates = RatesBetween(before, *status);
    const std::string text =
        terminal ? kClearScreen + FormatWatchScreen(*status, rates)
                 : FormatWatchLine(*status, rates);
    if (!WriteOut(text)) return kFailed;
    before = *std::move(status);
  } while (!WaitForInterrupt(*flags.watch_seconds));
  return kInterrupted;
}

int Status(Client& client, const StatusFlags& flags) {
  const CallOptions options = flags.server.call_options();
  if (flags.watch_seconds.has_value()) return Watch(client, flags);
  const absl::StatusOr<v1::GetModelResponse> model = client.GetModel(options);
  if (!model.ok() && !absl::IsPermissionDenied(model.status())) {
    return Fail(model.status());
  }
  const absl::StatusOr<v1::GetServerStatusResponse> status =
      client.GetServerStatus(options);
  // A key's role may see one of them.
  const bool partly = model.ok() && absl::IsPermissionDenied(status.status());
  if (!status.ok() && !partly) return Fail(status.status());
  if (flags.json) {
    WriteOut(absl::StrCat(
        "{\"model\":", model.ok() ? ToJson(*model) : "null",
        ",\"status\":", status.ok() ? ToJson(*status) : "null", "}\n"));
  } else {
    WriteOut(absl::StrCat(
        model.ok() ? FormatModel(*model) : "model        not for this key\n",
        status.ok() ? FormatStatus(*status)
                    : "state        not for this key\n"));
  }
  return kDone;
}

// --watch [SECONDS].
CLI::Option* AddWatch(CLI::App& command, StatusFlags* flags) {
  return command
      .add_option_function<std::string>(
          "--watch",
          [flags](const std::string& seconds) {
            flags->watch_seconds =
                seconds.empty() ? kDefaultPeriod : std::stod(seconds);
          },
          absl::StrCat("repeat every SECONDS, with rates, until Ctrl-C "
                       "[default: off; without a number ",
                       kDefaultPeriod, "]"))
      ->expected(0, 1)
      ->type_name("[SECONDS]")
      ->check(CLI::Validator(
          [](const std::string& seconds) -> std::string {
            if (seconds.empty()) return "";
            return Between(kShortestPeriod, kLongestPeriod)(seconds);
          },
          ""));
}

}  // namespace

void AddStatusCommand(CLI::App& program, Run* run) {
  CLI::App* command = program.add_subcommand(
      "status", "Show the model and the state of the server");
  auto flags = std::make_shared<StatusFlags>();
  // A probe that waits for ever tells nothing.
  flags->server.timeout_seconds = 10;
  AddServerFlags(*command, &flags->server);
  CLI::Option* check =
      command->add_flag("--check", flags->check,
                        "print nothing, exit 0 only if the server is ready; "
                        "needs no key [default: off]");
  CLI::Option* json = command->add_flag(
      "--json", flags->json,
      "print model and status as a line of JSON [default: off]");
  AddWatch(*command, flags.get())->excludes(check)->excludes(json);
  command->callback([run, flags] {
    *run = [flags] {
      if (flags->check) return Check(flags->server);
      return WithClient(flags->server,
                        [&](Client& client) { return Status(client, *flags); });
    };
  });
}

}  // namespace txl::cli
