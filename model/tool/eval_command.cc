// txl-model eval: perplexity and bits per token of a text, of a model as it is
// and of one that learns from the text as it goes.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/base/status_macros.h"
#include "model/tool/command.h"
#include "model/tool/model_flags.h"
#include "model/tool/progress_bar.h"
#include "model/tool/serving_evaluation.h"
#include "model/train/dynamic_evaluation.h"
#include "model/train/evaluation.h"
#include "model/train/streams.h"
#include "program/flag_checks.h"

namespace txl {
namespace {

struct EvalFlags {
  ModelFlags model;
  std::string engine = "reference";
  FormatFlags formats;
  std::string text;
  std::string unknown;  // "": not given
  double held_out = 0;
  StreamShape shape = {0, 128};  // streams 0: by the length of the text
  bool original_streams = false;
  int64_t max_segments = 0;
  std::optional<int64_t> mem_len, clamp_len, window;
  bool json = false;
  std::optional<DynamicSteps> steps;  // absent: the weights stay as they are
  DynamicOptions dynamic;
  std::string statistics;                     // file
  std::vector<const CLI::Option*> rms_flags;  // that only --dynamic rms takes
};

// The model's configuration with what the flags replace.
absl::StatusOr<ModelConfig> EvaluatedConfig(ModelConfig config,
                                            const EvalFlags& flags) {
  if (flags.mem_len) config.mem_len = *flags.mem_len;
  if (flags.clamp_len) {
    config.clamp_len = *flags.clamp_len > 0 ? flags.clamp_len : std::nullopt;
  }
  if (flags.window) {
    config.window = *flags.window > 0 ? flags.window : std::nullopt;
  }
  return ParseModelConfig(ModelConfigToJson(config), "flags");
}

absl::StatusOr<std::vector<int64_t>> EvaluatedIds(
    const ModelDirectory& directory, const EvalFlags& flags) {
  if (directory.vocabulary == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        directory.path, ": has no tokenizer.json, so text cannot be read"));
  }
  if (!(flags.held_out >= 0 && flags.held_out <= 1)) {
    return absl::InvalidArgumentError("--held-out: must be in [0, 1]");
  }
  TXL_ASSIGN_OR_RETURN(
      const std::vector<int32_t> ids,
      IdsOfFile(flags.text, *directory.vocabulary, flags.unknown));
  const int64_t begin =
      flags.held_out > 0
          ? HeldOutBegin(static_cast<int64_t>(ids.size()), flags.held_out)
          : 0;
  if (static_cast<int64_t>(ids.size()) - begin < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.text, ": fewer than two tokens to evaluate"));
  }
  return std::vector<int64_t>(ids.begin() + begin, ids.end());
}

// A stream begins without context, so that its first tokens are guessed worse.
// A short text is one; a long one, in which that matters little, is several.
int64_t StreamsFor(int64_t tokens) {
  constexpr int64_t kMost = 8;
  constexpr int64_t kTokensPerStream = 2048;
  return std::clamp<int64_t>(tokens / kTokensPerStream, 1, kMost);
}

// A perplexity becomes infinite, which JSON has no number for, before its nats.
bool IsFinite(const Evaluation& result) {
  return std::isfinite(result.perplexity());
}

// Ends after max_segments, at a loss that is not finite or at an interrupt.
EvaluationOptions MakeOptions(const EvalFlags& flags, ProgressBar& bar) {
  EvaluationOptions options;
  options.shape = flags.shape;
  options.cut =
      flags.original_streams ? StreamCut::kOriginal : StreamCut::kWhole;
  options.observer = [&flags, &bar, segments = int64_t{0}](
                         const Evaluation& so_far, double share) mutable {
    ++segments;
    if (flags.max_segments > 0) {
      share = std::max(share, static_cast<double>(segments) /
                                  static_cast<double>(flags.max_segments));
    }
    bar.Update(share, static_cast<double>(so_far.tokens),
               absl::StrFormat("%.4f nats per token", so_far.nats));
    const bool enough =
        flags.max_segments > 0 && segments >= flags.max_segments;
    return !enough && std::isfinite(so_far.nats) && !InterruptFlag();
  };
  return options;
}

nlohmann::ordered_json JsonOf(const Evaluation& result) {
  return {{"nats_per_token", result.nats},
          {"bits_per_token", result.bits()},
          {"perplexity", result.perplexity()},
          {"tokens", result.tokens}};
}

std::string LineOf(const Evaluation& result) {
  return absl::StrFormat(
      "%.6f nats per token, %.6f bits per token, perplexity %.4f, %d tokens\n",
      result.nats, result.bits(), result.perplexity(), result.tokens);
}

void Print(const Evaluation& result, const std::optional<Evaluation>& dynamic,
           const EvalFlags& flags) {
  const int64_t streams = flags.shape.streams;
  if (streams > 1 && !flags.original_streams) {
    std::cerr << "note: the text was cut into " << streams
              << " streams that begin without context; --streams 1 takes it as "
                 "one\n";
  }
  if (flags.json) {
    nlohmann::ordered_json json = JsonOf(result);
    json["streams"] = streams;
    if (dynamic) json["dynamic"] = JsonOf(*dynamic);
    std::cout << json.dump() << "\n";
    return;
  }
  std::cout << (dynamic ? "static:  " : "") << LineOf(result);
  if (dynamic) std::cout << "dynamic: " << LineOf(*dynamic);
}

absl::Status CheckDynamic(const EvalFlags& flags) {
  if (flags.steps && flags.engine == "serving") {
    return absl::InvalidArgumentError(
        "--dynamic: the serving engine does not learn");
  }
  for (const CLI::Option* option : flags.rms_flags) {
    if (option->count() == 0 || flags.steps == DynamicSteps::kRms) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(option->get_name(), ": only --dynamic rms takes it"));
  }
  return absl::OkStatus();
}

// The whole text of which rms gathers gradients; empty for other steps.
absl::StatusOr<std::vector<int64_t>> StatisticsIds(
    const ModelDirectory& directory, const EvalFlags& flags) {
  if (flags.steps != DynamicSteps::kRms) return std::vector<int64_t>();
  EvalFlags all = flags;
  all.held_out = 0;
  if (flags.statistics.empty()) {
    std::cerr << "note: gradients are gathered from the evaluated text "
                 "itself; --statistics names another\n";
  } else {
    all.text = flags.statistics;
  }
  return EvaluatedIds(directory, all);
}

struct EvaluatedTexts {
  std::vector<int64_t> ids, statistics;
};

// Evaluates again, with weights that learn.
absl::StatusOr<Evaluation> EvaluateDynamic(const EvalFlags& flags,
                                           const ModelConfig& config,
                                           const Weights& weights,
                                           const EvaluatedTexts& texts,
                                           ProgressBar& bar) {
  DynamicOptions dynamic = flags.dynamic;
  dynamic.steps = *flags.steps;
  DynamicEvaluation evaluation(config, weights, dynamic);
  if (dynamic.steps == DynamicSteps::kRms) {
    EvalFlags all = flags;
    all.max_segments = 0;
    evaluation.Gather(texts.statistics, MakeOptions(all, bar));
  }
  if (InterruptFlag()) return absl::CancelledError("interrupted");
  const Evaluation result = evaluation.Run(texts.ids, MakeOptions(flags, bar));
  if (IsFinite(result)) return result;
  return absl::InvalidArgumentError(absl::StrCat(
      "--lr: the perplexity is not finite after steps of ",
      dynamic.learning_rate,
      dynamic.steps == DynamicSteps::kRms ? "; a lower one, or a lower --decay,"
                                          : "; a lower one",
      " may help"));
}

// Only the native step has forms and formats other than the arithmetic's own.
absl::Status CheckFormats(const EvalFlags& flags) {
  TXL_ASSIGN_OR_RETURN(const c10::Device device,
                       ParseDevice(flags.model.device));
  if (flags.engine == "serving" && flags.model.dtype == c10::kFloat &&
      device.is_cpu()) {
    return absl::OkStatus();
  }
  return RequireDefaults(flags.formats,
                         "--engine serving, --dtype f32 and --device cpu");
}

absl::StatusOr<Evaluation> EvaluateServing(const EvalFlags& flags,
                                           const ModelConfig& config,
                                           Weights weights,
                                           absl::Span<const int64_t> ids,
                                           const EvaluationOptions& options) {
  ServingStepOptions serving;
  serving.shape = flags.shape;
  serving.formats = FormatsOf(flags.formats);
  serving.threads = flags.model.threads;
  UseVectorTarget(flags.formats.vector_target);
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelStep> step,
                       CreateServingStep(config, std::move(weights), serving));
  return EvaluateStep(*step, ids, options, RowsPerStream(serving.shape));
}

absl::Status RunEval(EvalFlags& flags) {
  TXL_RETURN_IF_ERROR(CheckFormats(flags));
  TXL_RETURN_IF_ERROR(CheckDynamic(flags));
  TXL_ASSIGN_OR_RETURN(OpenModel model, OpenModelOf(flags.model));
  TXL_ASSIGN_OR_RETURN(const ModelConfig config,
                       EvaluatedConfig(model.directory.config, flags));
  EvaluatedTexts texts;
  TXL_ASSIGN_OR_RETURN(texts.ids, EvaluatedIds(model.directory, flags));
  TXL_ASSIGN_OR_RETURN(texts.statistics, StatisticsIds(model.directory, flags));
  const std::vector<int64_t>& ids = texts.ids;
  const int64_t tokens = static_cast<int64_t>(ids.size());
  if (flags.shape.streams == 0) flags.shape.streams = StreamsFor(tokens);
  // A short text has no more streams than targets.
  flags.shape.streams = std::min(flags.shape.streams, tokens - 1);
  Evaluation result;
  std::optional<Evaluation> dynamic;
  std::optional<ProgressBar> bar("tokens");
  const EvaluationOptions options = MakeOptions(flags, *bar);
  if (flags.engine == "serving") {
    TXL_ASSIGN_OR_RETURN(
        result,
        EvaluateServing(flags, config, std::move(model.weights), ids, options));
  } else {
    result = Evaluate(ReferenceNetwork(config, model.weights), ids, options);
    if (IsFinite(result) && flags.steps && !InterruptFlag()) {
      bar.emplace("tokens");
      TXL_ASSIGN_OR_RETURN(
          dynamic, EvaluateDynamic(flags, config, model.weights, texts, *bar));
    }
  }
  bar.reset();
  if (InterruptFlag()) return absl::CancelledError("interrupted");
  if (!IsFinite(result)) {
    return absl::InvalidArgumentError(absl::StrCat(
        flags.model.directory, ": its perplexity on the text is not finite"));
  }
  Print(result, dynamic, flags);
  return absl::OkStatus();
}

void AddDynamicFlags(CLI::App& sub, EvalFlags& flags) {
  const NamesOf<DynamicSteps> names = {{"sgd", DynamicSteps::kSgd},
                                       {"rms", DynamicSteps::kRms}};
  CLI::Option* dynamic =
      sub.add_option("--dynamic", flags.steps,
                     "also evaluate with weights that learn from each segment "
                     "after it was predicted (arXiv:1904.08378): by plain "
                     "steps of the gradient, or by steps that --statistics "
                     "scales")
          ->transform(OneOf(names));
  CLI::Option* statistics =
      sub.add_option("--statistics", flags.statistics,
                     "rms: text like the model's training text, of which "
                     "gradients are gathered, 10,000 to 100,000 tokens "
                     "[--text]")
          ->check(CLI::ExistingFile);
  CLI::Option* rate =
      sub.add_option("--lr", flags.dynamic.learning_rate, "learning rate")
          ->check(Above(0));
  CLI::Option* decay =
      sub.add_option("--decay", flags.dynamic.decay,
                     "rms: how fast weights return to the model's")
          ->check(AtLeast(0));
  CLI::Option* epsilon =
      sub.add_option("--epsilon", flags.dynamic.epsilon,
                     "rms: what is added to the gathered roots")
          ->check(Above(0));
  flags.rms_flags = {statistics, decay, epsilon};
  for (CLI::Option* option : {statistics, rate, decay, epsilon}) {
    option->needs(dynamic);
  }
  for (CLI::Option* option : {dynamic, statistics, rate, decay, epsilon}) {
    option->group("Dynamic evaluation");
  }
}

}  // namespace

Command AddEvalCommand(CLI::App& app) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* sub = app.add_subcommand("eval",
                                     "Print nats and bits per token (or per "
                                     "character) and perplexity of a text");
  AddModelFlags(*sub, flags->model);
  sub->add_option("--engine", flags->engine,
                  "reference: the paper's forward pass, segment by segment; "
                  "serving: the server's step, in which every token sees what "
                  "it would see token by token. If a model's windows depend on "
                  "the segments, the figures differ slightly")
      ->transform(OneOf({"reference", "serving"}));
  AddFormatFlags(*sub, flags->formats);
  sub->add_option("--text", flags->text)->required()->check(CLI::ExistingFile);
  AddUnknownSymbolFlag(*sub, &flags->unknown);
  sub->add_option("--held-out", flags->held_out,
                  "share of the text, at its end, to evaluate; 0: all");
  sub->add_option("--streams", flags->shape.streams,
                  "parallel streams, each of which begins without context [one "
                  "for every 2048 tokens, 1 to 8]")
      ->default_str("")
      ->check(AtLeast(1));
  sub->add_option("--segment", flags->shape.segment, "tokens per call")
      ->check(AtLeast(1));
  sub->add_flag("--original-streams", flags->original_streams,
                "cut streams like the original code: the rest of the text is "
                "dropped, and no target crosses a border");
  sub->add_option("--max-segments", flags->max_segments, "0: all")
      ->check(AtLeast(0));
  sub->add_option("--mem-len", flags->mem_len, "memory rows [the model's]")
      ->check(AtLeast(0));
  sub->add_option(
      "--clamp-len", flags->clamp_len,
      "largest distance with its own encoding; -1: off [the model's]");
  sub->add_option(
         "--window", flags->window,
         "keys that a token sees, itself included; 0: all [the model's]")
      ->check(AtLeast(0));
  sub->add_flag("--json", flags->json);
  AddDynamicFlags(*sub, *flags);
  return {sub, [flags] { return RunEval(*flags); }};
}

}  // namespace txl
