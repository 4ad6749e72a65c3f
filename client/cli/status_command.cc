// txl status: what a server is and does.

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/output.h"

namespace txl::cli {
namespace {

struct Flags {
  ServerFlags server;
  bool check = false;
  bool json = false;
};

std::string StateName(v1::ServerState state) {
  switch (state) {
    case v1::SERVER_STATE_STARTING:
      return "starting";
    case v1::SERVER_STATE_READY:
      return "ready";
    case v1::SERVER_STATE_DRAINING:
      return "draining";
    default:
      return "unknown";
  }
}

std::string FormatModel(const v1::GetModelResponse& model) {
  return absl::StrFormat(
      "model        %s (%s)\n"
      "vocabulary   %d %s\n"
      "shape        %d layers, %d heads of %d, width %d\n"
      "memory       %d positions, %d bytes per session\n"
      "runs on      %s, %s, %s, %s\n"
      "version      %s, %s\n",
      model.name(), model.fingerprint().substr(0, 12), model.vocabulary_size(),
      model.vocabulary_kind().empty() ? "token ids" : model.vocabulary_kind(),
      model.layers(), model.heads(), model.head_width(), model.model_width(),
      model.memory_length(), model.bytes_per_session(), model.device(),
      model.kernel(), model.form(), model.weight_dtype(),
      model.server_version(), model.api_version());
}

std::string FormatStatus(const v1::GetServerStatusResponse& status) {
  const double mean_batch =
      status.steps_with_decode() == 0
          ? 0
          : static_cast<double>(status.rows_decode()) /
                static_cast<double>(status.steps_with_decode());
  const std::map<std::string, int64_t> finished(status.turns_finished().begin(),
                                                status.turns_finished().end());
  return absl::StrFormat(
      "state        %s, up %d s\n"
      "sessions     %d busy, %d idle\n"
      "slots        %d of %d\n"
      "queue        %d calls, %d tokens\n"
      "steps        %d, mean %.1f decode rows\n"
      "turns        %d started, %d active; finished: %s\n"
      "tokens       %d sampled, %d delivered, %d discarded\n",
      StateName(status.state()), status.uptime().seconds(),
      status.sessions_busy(), status.sessions_idle(), status.slots_used(),
      status.slots_total(), status.queued_calls(), status.queued_tokens(),
      status.steps(), mean_batch, status.turns_started(), status.turns_active(),
      finished.empty()
          ? "none"
          : absl::StrJoin(finished, ", ", absl::PairFormatter(" ")),
      status.tokens_sampled(), status.tokens_delivered(),
      status.tokens_discarded());
}

// For probes: silent, the exit code says it.
int Check(Client& client, const CallOptions& options) {
  const absl::StatusOr<v1::GetServerStatusResponse> status =
      client.GetServerStatus(options);
  if (!status.ok()) return Fail(status.status());
  if (status->state() == v1::SERVER_STATE_READY) return kDone;
  return Fail(absl::UnavailableError(
      absl::StrCat("the server is ", StateName(status->state()))));
}

int Status(Client& client, const Flags& flags) {
  const CallOptions options = flags.server.call_options();
  if (flags.check) return Check(client, options);
  const absl::StatusOr<v1::GetModelResponse> model = client.GetModel(options);
  if (!model.ok()) return Fail(model.status());
  const absl::StatusOr<v1::GetServerStatusResponse> status =
      client.GetServerStatus(options);
  if (!status.ok()) return Fail(status.status());
  if (flags.json) {
    WriteOut(absl::StrCat("{\"model\":", ToJson(*model),
                          ",\"status\":", ToJson(*status), "}\n"));
  } else {
    WriteOut(FormatModel(*model) + FormatStatus(*status));
  }
  return kDone;
}

}  // namespace

void AddStatusCommand(CLI::App& program, Run* run) {
  CLI::App* command =
      program.add_subcommand("status", "Show what the server is and does");
  auto flags = std::make_shared<Flags>();
  // A probe that waits for ever tells nothing.
  flags->server.timeout_seconds = 10;
  AddServerFlags(*command, &flags->server);
  command->add_flag("--check", flags->check,
                    "print nothing, exit 0 only when it is ready "
                    "[default: off]");
  command->add_flag("--json", flags->json,
                    "print model and status as a line of JSON [default: off]");
  command->callback([run, flags] {
    *run = [flags] {
      return WithClient(flags->server,
                        [&](Client& client) { return Status(client, *flags); });
    };
  });
}

}  // namespace txl::cli
