// txl generate: one turn, streamed to standard output.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "client/call_error.h"
#include "client/cli/command.h"
#include "client/cli/generate_flags.h"
#include "client/cli/line_reader.h"
#include "client/cli/long_text.h"
#include "client/cli/midi_file.h"
#include "client/cli/output.h"
#include "client/cli/samples.h"
#include "client/retrying_client.h"
#include "program/flag_checks.h"

namespace txl::cli {
namespace {

struct GenerateCommandFlags {
  ServerFlags server;
  GenerateFlags turn;
  std::string print = "text";
  bool json = false;
  int64_t samples = 1;
};

PrintMode ModeOf(const GenerateCommandFlags& flags) {
  if (flags.json) return PrintMode::kJson;
  return flags.print == "tokens" ? PrintMode::kTokens : PrintMode::kText;
}

// What is asked for but would not be printed.
absl::Status CheckPrinted(const GenerateCommandFlags& flags) {
  const bool ids = !flags.turn.logprob_tokens.empty();
  if ((flags.turn.logprobs || ids) && ModeOf(flags) == PrintMode::kText) {
    return absl::InvalidArgumentError(
        absl::StrCat(ids ? "--logprob-tokens" : "--logprobs",
                     ": shown with --json or --print tokens"));
  }
  if (flags.turn.token_bytes && !flags.json) {
    return absl::InvalidArgumentError("--token-bytes: shown with --json");
  }
  return absl::OkStatus();
}

bool HasLogprobs(const v1::OutputOptions& output) {
  return output.has_logprobs() || output.logprob_token_ids_size() > 0;
}

// Fail for a turn. Unlike a chat, a turn does not create its session.
int FailTurn(const absl::Status& status, const std::string& session) {
  Fail(status);
  if (!session.empty() && GetCallError(status).reason == "SESSION_UNKNOWN") {
    std::fprintf(stderr, "txl: 'txl sessions create %s' creates it\n",
                 session.c_str());
  }
  return kFailed;
}

int RunTurn(Client& client, const GenerateCommandFlags& flags,
            const v1::GenerateRequest& request) {
  Canceller canceller;
  CancelOnInterrupt watch(&canceller);
  TurnPrinter printer(ModeOf(flags), HasLogprobs(request.output()));
  const absl::Status status =
      GenerateAfterPrompt(client, flags.server.retry_policy(), request,
                          flags.server.call_options(&canceller),
                          [&](const v1::GenerateResponse& response) {
                            if (!WriteOut(printer.Format(response)))
                              canceller.Cancel();
                          });
  if (!OutputStatus().ok()) return kFailed;  // the program says why
  WriteOut(printer.End());
  if (watch.interrupted()) return FailInterrupted();
  if (!status.ok()) return FailTurn(status, flags.turn.session);
  if (printer.silent()) {
    std::fprintf(stderr,
                 "txl: the turn has no text; --print tokens shows its ids\n");
  }
  return kDone;
}

// One of several: its own printer, its number before it.
absl::Status RunSample(Client& client, const GenerateCommandFlags& flags,
                       int64_t sample, const v1::GenerateRequest& request,
                       Canceller* canceller) {
  TurnPrinter printer(ModeOf(flags), HasLogprobs(request.output()));
  if (!flags.json) WriteOut(absl::StrCat("[", sample, "]\n"));
  RetryingClient retrying(&client, flags.server.retry_policy());
  const absl::Status status = retrying.Generate(
      request, flags.server.call_options(canceller),
      [&](const v1::GenerateResponse& response) {
        const std::string text = flags.json ? SampleJson(sample, response)
                                            : printer.Format(response);
        if (!WriteOut(text)) canceller->Cancel();
      });
  if (OutputStatus().ok()) WriteOut(printer.End());
  return status;
}

int RunSamples(Client& client, const GenerateCommandFlags& flags,
               const v1::GenerateRequest& request) {
  Canceller canceller;
  CancelOnInterrupt watch(&canceller);
  const absl::Status status = GenerateSamples(
      client, request, flags.samples, flags.server.call_options(&canceller),
      [&](int64_t sample, const v1::GenerateRequest& one) {
        return RunSample(client, flags, sample, one, &canceller);
      });
  if (!OutputStatus().ok()) return kFailed;  // the program says why
  if (watch.interrupted()) return FailInterrupted();
  return status.ok() ? kDone : FailTurn(status, flags.turn.session);
}

// Names and positions are of one turn in the session itself.
absl::Status CheckSamples(const GenerateCommandFlags& flags) {
  if (flags.samples == 1) return absl::OkStatus();
  if (!flags.turn.request_id.empty() || flags.turn.expected_position) {
    return absl::InvalidArgumentError(
        "--n: not with --request-id or --expected-position");
  }
  return absl::OkStatus();
}

int Generate(GenerateCommandFlags flags) {
  absl::Status printed = CheckPrinted(flags);
  printed.Update(CheckSamples(flags));
  if (!printed.ok()) return FailUsage(std::string(printed.message()));
  const absl::Status read = ReadPrompt(&flags.turn);
  if (!read.ok()) return FailInput(read);
  absl::StatusOr<v1::GenerateRequest> request = MakeGenerateRequest(flags.turn);
  if (!request.ok()) return FailUsage(std::string(request.status().message()));
  return WithClient(flags.server, [&](Client& client) {
    if (flags.turn.midi_file) {
      auto music = TokenizeMidi(client, *flags.turn.midi_file,
                                flags.server.call_options());
      if (!music.ok()) return Fail(music.status());
      request->mutable_tokens()->mutable_ids()->Swap(
          music->mutable_token_ids());
    }
    return flags.samples > 1 ? RunSamples(client, flags, *request)
                             : RunTurn(client, flags, *request);
  });
}

}  // namespace

void AddGenerateCommand(CLI::App& program, Run* run) {
  CLI::App* command = program.add_subcommand(
      "generate", "Generate text and stream it to standard output");
  auto flags = std::make_shared<GenerateCommandFlags>();
  AddServerFlags(*command, &flags->server);
  AddRetryFlags(*command, &flags->server);
  AddPromptFlags(*command, &flags->turn);
  AddSamplingFlags(*command, &flags->turn);
  AddOutputFlags(*command, &flags->turn);
  command->add_option("--print", flags->print, "text or tokens (ids)")
      ->transform(OneOf({"text", "tokens"}))
      ->capture_default_str();
  command
      ->add_option("--n", flags->samples,
                   "continuations of the prompt, with --seed and the seeds "
                   "after it; the session does not change")
      ->check(AtLeast(1))
      ->capture_default_str();
  command->add_flag("--json", flags->json,
                    "print every response as a line of JSON [default: off]");
  command->callback(
      [run, flags] { *run = [flags] { return Generate(*flags); }; });
}

}  // namespace txl::cli
