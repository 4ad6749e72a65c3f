#include "client/cli/generate_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/command.h"
#include "client/cli/output.h"
#include "program/command_line.h"
#include "program/flag_checks.h"

namespace txl::cli {
namespace {

constexpr char kModelDefault[] = " [default: the model's, else ";

std::string Help(absl::string_view text, absl::string_view api_default) {
  return absl::StrCat(text, kModelDefault, api_default, "]");
}

// A flag that sets a field of `message`.
template <typename Message, typename T>
void AddField(CLI::App& command, const char* flag, Message* message,
              void (Message::*set)(T), const std::string& help) {
  command.add_option_function<T>(
      flag, [message, set](T value) { (message->*set)(value); }, help);
}

// Splits ID=... ; empty: there is no id.
std::string BehindId(const std::string& entry, uint32_t* id) {
  const size_t equals = entry.find('=');
  const bool has_id = equals != std::string::npos &&
                      absl::SimpleAtoi(entry.substr(0, equals), id);
  return has_id ? entry.substr(equals + 1) : "";
}

absl::Status AddLogitBias(const std::string& entry, v1::SamplingParams* out) {
  uint32_t id = 0;
  float value = 0;
  if (!absl::SimpleAtof(BehindId(entry, &id), &value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--logit-bias: '", entry, "' is not ID=VALUE"));
  }
  (*out->mutable_logit_bias())[id] = value;
  return absl::OkStatus();
}

absl::Status SetTokenCount(const std::string& entry, v1::TokenCount* out) {
  uint32_t id = 0;
  int32_t count = 0;
  if (!absl::SimpleAtoi(BehindId(entry, &id), &count)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--stop-after: '", entry, "' is not ID=COUNT"));
  }
  out->set_id(id);
  out->set_count(count);
  return absl::OkStatus();
}

absl::Status FillSampling(const GenerateFlags& flags, v1::SamplingParams* out) {
  *out = flags.sampling;
  out->mutable_allowed_token_ids()->Assign(flags.allowed_tokens.begin(),
                                           flags.allowed_tokens.end());
  for (const std::string& entry : flags.logit_bias) {
    absl::Status status = AddLogitBias(entry, out);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status FillStop(const GenerateFlags& flags, v1::StopConditions* out) {
  *out = flags.stop;
  out->mutable_stop_texts()->Assign(flags.stop_texts.begin(),
                                    flags.stop_texts.end());
  out->mutable_stop_token_ids()->Assign(flags.stop_tokens.begin(),
                                        flags.stop_tokens.end());
  return flags.stop_after
             ? SetTokenCount(*flags.stop_after, out->mutable_token_count())
             : absl::OkStatus();
}

void AddStopFlags(CLI::App& command, GenerateFlags* flags) {
  v1::StopConditions* stop = &flags->stop;
  AddField(command, "--max-tokens", stop, &v1::StopConditions::set_max_tokens,
           Help("tokens to generate at most", "128"));
  command
      .add_option("--stop", flags->stop_texts,
                  "text that ends the turn; repeatable [default: the model's]")
      ->check(SentText())
      ->allow_extra_args(false);
  command
      .add_option("--stop-token", flags->stop_tokens,
                  "token id that ends the turn; repeatable [default: none]")
      ->allow_extra_args(false);
  command.add_option("--stop-after", flags->stop_after,
                     "ID=COUNT: end the turn at this occurrence of a token "
                     "[default: none]");
  command.add_flag_callback(
      "--ignore-end-token", [stop] { stop->set_ignore_end_token(true); },
      "continue after the model's end tokens [default: off]");
  command.add_flag_callback(
      "--include-stop-text", [stop] { stop->set_include_stop_text(true); },
      "keep the stop text in the output [default: off]");
}

}  // namespace

void AddSamplingFlags(CLI::App& command, GenerateFlags* flags) {
  using Sampling = v1::SamplingParams;
  Sampling* sampling = &flags->sampling;
  AddField(command, "--temperature", sampling, &Sampling::set_temperature,
           Help("divides the logits, 0: greedy", "1"));
  AddField(command, "--top-k", sampling, &Sampling::set_top_k,
           Help("keep the k most probable tokens, 0: off", "0"));
  AddField(command, "--top-p", sampling, &Sampling::set_top_p,
           Help("keep the most probable tokens up to this total, 1: off", "1"));
  AddField(command, "--min-p", sampling, &Sampling::set_min_p,
           Help("keep tokens with this fraction of the best, 0: off", "0"));
  AddField(command, "--typical-p", sampling, &Sampling::set_typical_p,
           Help("keep the most typical tokens up to this total, 1: off", "1"));
  AddField(command, "--repetition-penalty", sampling,
           &Sampling::set_repetition_penalty,
           Help("divides logits of tokens in the window, 1: off", "1"));
  AddField(command, "--presence-penalty", sampling,
           &Sampling::set_presence_penalty,
           Help("subtracted once for each token in the window", "0"));
  AddField(command, "--frequency-penalty", sampling,
           &Sampling::set_frequency_penalty,
           Help("subtracted for each occurrence in the window", "0"));
  AddField(command, "--penalty-window", sampling, &Sampling::set_penalty_window,
           Help("last tokens that penalties look at", "64"));
  command
      .add_option("--logit-bias", flags->logit_bias,
                  "ID=VALUE added to a logit; repeatable [default: none]")
      ->allow_extra_args(false);
  AddNumbers(command, "--allowed-tokens", &flags->allowed_tokens,
             "only token ids to draw, comma-separated [default: all]");
  command.add_flag_callback(
      "--follow-kinds", [sampling] { sampling->set_follow_kinds(true); },
      "only tokens of kinds that may follow, such as events of music "
      "[default: the model's, else off]");
  command.add_flag_callback(
      "--no-follow-kinds", [sampling] { sampling->set_follow_kinds(false); },
      "tokens of any kind");
  AddField(command, "--seed", sampling, &Sampling::set_seed,
           "seed of the draws [default: chosen by the server]");
  AddField(command, "--min-tokens", sampling, &Sampling::set_min_tokens,
           Help("tokens before a stop or end token can be sampled", "0"));
  AddStopFlags(command, flags);
}

void AddPromptFlags(CLI::App& command, GenerateFlags* flags) {
  command
      .add_option("--session", flags->session,
                  "session to continue [default: a temporary one]")
      ->check(SentName());
  CLI::Option* prompt = command.add_option(
      "--prompt", flags->prompt,
      "text to feed first, -: standard input [default: none]");
  prompt->check(SentText());
  CLI::Option* file =
      command
          .add_option("--prompt-file", flags->prompt_file,
                      "file whose text to feed first [default: none]")
          ->type_name("FILE")
          ->excludes(prompt);
  CLI::Option* midi =
      command
          .add_option("--midi", flags->midi_file,
                      "MIDI file whose music to continue, -: standard input "
                      "[default: none]")
          ->type_name("FILE")
          ->excludes(prompt)
          ->excludes(file);
  AddUnknownFlag(command, &flags->unknown);
  AddNumbers(command, "--tokens", &flags->tokens,
             "prompt as token ids, comma-separated [default: none]")
      ->excludes(prompt)
      ->excludes(file)
      ->excludes(midi);
  command
      .add_option("--request-id", flags->request_id,
                  "name of this turn in its session [default: none]")
      ->check(SentName());
  command.add_option("--expected-position", flags->expected_position,
                     "refuse another position [default: not checked]");
}

void AddOutputFlags(CLI::App& command, GenerateFlags* flags) {
  command.add_option("--logprobs", flags->logprobs,
                     "alternatives to report for each token [default: 0]");
  AddNumbers(command, "--logprob-tokens", &flags->logprob_tokens,
             "token ids to report behind them, comma-separated [default: "
             "none]");
  command.add_flag("--token-bytes", flags->token_bytes,
                   "report each token's exact bytes [default: off]");
}

absl::Status ReadPrompt(GenerateFlags* flags) {
  const bool from_file = !flags->prompt_file.empty();
  if (!from_file && flags->prompt != "-") return absl::OkStatus();
  absl::StatusOr<std::string> text =
      ReadInput(from_file ? flags->prompt_file : "-");
  if (!text.ok()) return text.status();
  flags->prompt = *std::move(text);
  return absl::OkStatus();
}

absl::StatusOr<v1::GenerateRequest> MakeGenerateRequest(
    const GenerateFlags& flags) {
  v1::GenerateRequest request;
  request.set_session_id(flags.session);
  if (flags.prompt) request.set_text(*flags.prompt);
  request.set_unknown(UnknownTextOf(flags.unknown));
  if (!flags.tokens.empty()) {
    request.mutable_tokens()->mutable_ids()->Assign(flags.tokens.begin(),
                                                    flags.tokens.end());
  }
  request.set_request_id(flags.request_id);
  if (flags.expected_position) {
    request.set_expected_position(*flags.expected_position);
  }
  absl::Status status = FillSampling(flags, request.mutable_sampling());
  if (!status.ok()) return status;
  status = FillStop(flags, request.mutable_stop());
  if (!status.ok()) return status;
  if (flags.logprobs) request.mutable_output()->set_logprobs(*flags.logprobs);
  request.mutable_output()->mutable_logprob_token_ids()->Assign(
      flags.logprob_tokens.begin(), flags.logprob_tokens.end());
  request.mutable_output()->set_include_token_bytes(flags.token_bytes);
  return request;
}

}  // namespace txl::cli
