// txl score: how probable a text is to the model.
//
// A long text goes through a session in pieces: a server limits the size of a
// call but not of a session.

#include "client/cli/score_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/call_error.h"
#include "client/cli/command.h"
#include "client/cli/line_reader.h"
#include "client/cli/long_text.h"
#include "client/cli/n_best.h"
#include "client/cli/output.h"
#include "program/command_line.h"
#include "program/flag_checks.h"

namespace txl::cli {
namespace {

struct ScoreFlags {
  ServerFlags server;
  std::string file;
  std::string n_best;   // empty: none
  std::string unknown;  // "": not given
  int64_t chunk_tokens = 0;
  bool json = false;
};

class Scorer {
 public:
  Scorer(Client* client, const ScoreFlags& flags)
      : client_(client),
        flags_(flags),
        options_(flags.server.call_options(&canceller_)),
        watch_(&canceller_) {}

  int Run(const std::string& text) {
    const int exit_code = RunToTheEnd(text);
    return watch_.interrupted() ? FailInterrupted() : exit_code;
  }

 private:
  int RunToTheEnd(const std::string& text) {
    absl::StatusOr<v1::GetModelResponse> model = client_->GetModel(options_);
    if (!model.ok()) return Fail(model.status());
    const auto ids =
        TokenizeAll(*client_, text, UnknownTextOf(flags_.unknown), options_);
    if (!ids.ok()) return Fail(ids.status());
    if (ids->empty()) {
      return Fail(absl::InvalidArgumentError("the text holds no token"));
    }
    int64_t chunk = model->limits().max_prompt_tokens();
    if (flags_.chunk_tokens > 0) chunk = std::min(chunk, flags_.chunk_tokens);
    const absl::Status status = ScoreAll(*ids, chunk);
    if (!status.ok()) return Fail(status);
    totals_.characters = CountCharacters(text);
    WriteOut(flags_.json ? ToJsonLine(totals_) : ToText(totals_));
    return kDone;
  }

  // In one call where that is enough: it needs no session, which not every
  // key's role has.
  absl::Status ScoreAll(const std::vector<uint32_t>& ids, int64_t chunk) {
    if (static_cast<int64_t>(ids.size()) <= chunk) {
      v1::ScoreRequest request;
      request.mutable_tokens()->mutable_ids()->Assign(ids.begin(), ids.end());
      const auto response = client_->Score(request, options_);
      if (response.ok()) totals_.Add(response->tokens());
      return response.status();
    }
    absl::StatusOr<v1::CreateSessionResponse> session =
        client_->CreateSession({}, options_);
    if (absl::IsPermissionDenied(session.status())) {
      return About(absl::StrCat("more than ", chunk, " tokens need a session"),
                   session.status());
    }
    if (!session.ok()) return session.status();
    const std::string& id = session->session().session_id();
    absl::Status status = Feed(id, ids, std::max<int64_t>(chunk, 1));
    v1::DeleteSessionRequest request;
    request.set_session_id(id);
    // No canceller takes part: a cancelled score leaves no session behind.
    status.Update(
        client_->DeleteSession(request, flags_.server.call_options()).status());
    return status;
  }

  absl::Status Feed(const std::string& session_id,
                    const std::vector<uint32_t>& ids, int64_t chunk) {
    const int64_t count = static_cast<int64_t>(ids.size());
    for (int64_t begin = 0; begin < count; begin += chunk) {
      const int64_t end = std::min(begin + chunk, count);
      v1::AppendTokensRequest request;
      request.set_session_id(session_id);
      request.set_return_logprobs(true);
      request.set_expected_position(begin);
      request.mutable_tokens()->mutable_ids()->Assign(ids.begin() + begin,
                                                      ids.begin() + end);
      absl::StatusOr<v1::AppendTokensResponse> response =
          client_->AppendTokens(request, options_);
      if (!response.ok()) return response.status();
      totals_.Add(response->scored());
      if (isatty(STDERR_FILENO)) {
        std::fprintf(stderr, "\r%lld of %lld tokens%s",
                     static_cast<long long>(end), static_cast<long long>(count),
                     end == count ? "\n" : "");
      }
    }
    return absl::OkStatus();
  }

  Client* client_;
  const ScoreFlags& flags_;
  Canceller canceller_;
  CallOptions options_;
  CancelOnInterrupt watch_;
  ScoreTotals totals_;
};

int ScoreLists(const ScoreFlags& flags) {
  const absl::StatusOr<std::string> text = ReadInput(flags.n_best);
  if (!text.ok()) return FailInput(text.status());
  return WithClient(flags.server, [&](Client& client) {
    Canceller canceller;
    CancelOnInterrupt watch(&canceller);
    const absl::Status status =
        ScoreNBest(client, *text, UnknownTextOf(flags.unknown),
                   flags.server.call_options(&canceller));
    if (!OutputStatus().ok()) return kFailed;  // the program says why
    if (watch.interrupted()) return FailInterrupted();
    return status.ok() ? kDone : Fail(status);
  });
}

int Score(const ScoreFlags& flags) {
  if (!flags.n_best.empty()) return ScoreLists(flags);
  if (flags.file.empty()) return FailUsage("FILE or --n-best is required");
  const absl::StatusOr<std::string> text = ReadInput(flags.file);
  if (!text.ok()) return FailInput(text.status());
  return WithClient(flags.server, [&](Client& client) {
    return Scorer(&client, flags).Run(*text);
  });
}

}  // namespace

void AddScoreCommand(CLI::App& program, Run* run) {
  CLI::App* command = program.add_subcommand(
      "score", "Nats per token, bits per character, perplexity of a text");
  auto flags = std::make_shared<ScoreFlags>();
  AddServerFlags(*command, &flags->server);
  CLI::Option* file =
      command->add_option("FILE", flags->file, "UTF-8 text, -: standard input")
          ->type_name("FILE");
  command
      ->add_option("--n-best", flags->n_best,
                   "file of JSON lines with alternatives and a context or a "
                   "session, -: standard input")
      ->type_name("FILE")
      ->excludes(file);
  AddUnknownFlag(*command, &flags->unknown);
  command
      ->add_option("--chunk-tokens", flags->chunk_tokens,
                   "tokens of a call at most, 0: the server's limit")
      ->check(AtLeast(0))
      ->capture_default_str();
  command->add_flag("--json", flags->json,
                    "print one line of JSON [default: off]");
  command->callback([run, flags] { *run = [flags] { return Score(*flags); }; });
}

void ScoreTotals::Add(
    const google::protobuf::RepeatedPtrField<v1::ScoredToken>& piece) {
  tokens += piece.size();
  for (const v1::ScoredToken& token : piece) {
    if (!token.has_logprob()) continue;
    ++predicted;
    sum_logprob += token.logprob();
  }
}

std::optional<double> ScoreTotals::nats_per_token() const {
  if (predicted == 0) return std::nullopt;
  return -sum_logprob / static_cast<double>(predicted);
}

std::optional<double> ScoreTotals::perplexity() const {
  if (predicted == 0) return std::nullopt;
  return std::exp(*nats_per_token());
}

std::optional<double> ScoreTotals::bits_per_character() const {
  if (predicted == 0 || characters == 0) return std::nullopt;
  return -sum_logprob / std::log(2.0) / static_cast<double>(characters);
}

std::string ToText(const ScoreTotals& totals) {
  const auto number = [](std::optional<double> value) {
    return value ? absl::StrFormat("%.6f", *value) : "not defined";
  };
  return absl::StrFormat(
      "tokens %d\ncharacters %d\nnats per token %s\n"
      "bits per character %s\nperplexity %s\n",
      totals.tokens, totals.characters, number(totals.nats_per_token()),
      number(totals.bits_per_character()), number(totals.perplexity()));
}

std::string ToJsonLine(const ScoreTotals& totals) {
  using Json = nlohmann::ordered_json;
  const auto number = [](std::optional<double> value) {
    return value ? Json(*value) : Json();
  };
  const Json json = {
      {"tokens", totals.tokens},
      {"predicted_tokens", totals.predicted},
      {"characters", totals.characters},
      {"sum_logprob", totals.sum_logprob},
      {"nats_per_token", number(totals.nats_per_token())},
      {"bits_per_character", number(totals.bits_per_character())},
      {"perplexity", number(totals.perplexity())}};
  return json.dump() + "\n";
}

}  // namespace txl::cli
