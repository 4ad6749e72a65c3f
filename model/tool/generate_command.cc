// txl-model generate: text from a model directory, without a server.

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/sampling/sampler.h"
#include "model/step/model_step.h"
#include "model/text/stop_text_matcher.h"
#include "model/tool/command.h"
#include "model/tool/model_flags.h"
#include "model/tool/progress_bar.h"
#include "program/command_line.h"
#include "program/flag_checks.h"

namespace txl {
namespace {

constexpr int64_t kDefaultMaxTokens = 128;
// Prompts are fed in calls of this many tokens, which bounds the scores of a
// call; the serving window makes the cuts irrelevant.
constexpr int64_t kPromptSegment = 128;

struct GenerateFlags {
  ModelFlags model;
  std::string prompt;
  std::string unknown;  // "": not given
  std::optional<int64_t> max_tokens;
  SamplingOverrides sampling;
};

SamplingParams Sampling(const ModelDirectory& directory,
                        const GenerateFlags& flags) {
  SamplingParams params = ApplyOverrides(
      ApplyOverrides(SamplingParams(), directory.generation.sampling),
      flags.sampling);
  if (!flags.sampling.seed && !directory.generation.sampling.seed) {
    std::random_device random;
    params.seed = (uint64_t{random()} << 32) | random();
  }
  return params;
}

absl::StatusOr<std::vector<int32_t>> PromptIds(const ModelDirectory& directory,
                                               const GenerateFlags& flags) {
  std::string given = flags.prompt;
  const bool from_input = given == "-";
  if (from_input) {
    given.assign(std::istreambuf_iterator<char>(std::cin), {});
  }
  TXL_ASSIGN_OR_RETURN(const absl::string_view text,
                       TextFor(*directory.vocabulary, given,
                               from_input ? "standard input" : "--prompt"));
  TXL_ASSIGN_OR_RETURN(const EncodeOptions options,
                       EncodeOptionsOf(*directory.vocabulary, flags.unknown));
  std::vector<int32_t> ids = directory.generation.start_tokens;
  if (!text.empty()) {
    TXL_ASSIGN_OR_RETURN(ids, directory.vocabulary->Encode(text, options));
    if (ids.empty()) {
      return absl::InvalidArgumentError("--prompt: holds no token");
    }
  }
  if (ids.empty()) {
    return absl::InvalidArgumentError(
        "--prompt: the model has no start tokens, so a prompt is needed");
  }
  return ids;
}

// One text as it grows: network, memory, ids.
class Generation {
 public:
  Generation(const OpenModel& model, const ModelConfig& config)
      : network_(config, model.weights),
        memory_(network_.InitialMemory(1)),
        counter_(config.beat_positions.value_or(BeatPositions())),
        sampler_(BinsOf(config), model.directory.kinds) {}

  // Feeds `ids`; the distribution after the last one is then sampled from.
  void Feed(absl::Span<const int32_t> ids) {
    const int64_t count = static_cast<int64_t>(ids.size());
    for (int64_t at = 0; at < count; at += kPromptSegment) {
      const auto part = ids.subspan(at, kPromptSegment);
      ForwardOptions options = {.ticks = Row(counter_.AddAll(part))};
      const at::Tensor hidden = network_.Forward(Row(part), memory_, options);
      last_ = hidden.select(1, hidden.size(1) - 1);
    }
    ids_.insert(ids_.end(), ids.begin(), ids.end());
  }

  absl::StatusOr<int32_t> Sample(const SamplingParams& params) const {
    const at::Tensor logprobs =
        network_.LogProbs(last_).to(at::kCPU, at::kFloat).contiguous();
    SampleContext context;
    context.recent_ids = ids_;
    context.position = static_cast<int64_t>(ids_.size());
    return sampler_.Sample(
        absl::MakeConstSpan(logprobs.const_data_ptr<float>(),
                            static_cast<size_t>(logprobs.numel())),
        params, context);
  }

 private:
  // [1, numbers] on the network's device.
  at::Tensor Row(absl::Span<const int32_t> numbers) const {
    return at::tensor(at::ArrayRef<int32_t>(numbers.data(), numbers.size()),
                      at::kInt)
        .to(network_.weights().embedding[0].w.device(), at::kLong)
        .unsqueeze(0);
  }

  ReferenceNetwork network_;
  SegmentMemory memory_;
  BeatCounter counter_;  // looked at by models with beat positions
  Sampler sampler_;
  std::vector<int32_t> ids_;
  at::Tensor last_;  // [1, d]
};

// Prints text until a stop text, an end token, the limit or an interrupt.
absl::Status Stream(const ModelDirectory& directory, int64_t max_tokens,
                    const SamplingParams& params, Generation& generation) {
  const GenerationDefaults& defaults = directory.generation;
  const auto detokenizer = directory.vocabulary->NewDetokenizer();
  StopTextMatcher matcher(defaults.stop_texts, /*include_stop_text=*/false);
  for (int64_t i = 0; i < max_tokens && !InterruptFlag(); ++i) {
    TXL_ASSIGN_OR_RETURN(const int32_t id, generation.Sample(params));
    if (std::find(defaults.end_tokens.begin(), defaults.end_tokens.end(), id) !=
        defaults.end_tokens.end()) {
      break;
    }
    const StopTextMatcher::Output out = matcher.Push(detokenizer->Add(id));
    std::cout << out.text << std::flush;
    if (out.matched) return absl::OkStatus();
    generation.Feed({&id, 1});
  }
  const StopTextMatcher::Output rest = matcher.Push(detokenizer->Flush());
  std::cout << rest.text;
  if (!rest.matched) std::cout << matcher.Flush();
  return absl::OkStatus();
}

absl::Status RunGenerate(const GenerateFlags& flags) {
  const at::NoGradGuard no_grad;
  TXL_ASSIGN_OR_RETURN(const OpenModel model, OpenModelOf(flags.model));
  const ModelDirectory& directory = model.directory;
  if (directory.vocabulary == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        directory.path, ": has no tokenizer.json, so there is no text"));
  }
  ModelConfig config = directory.config;
  config.window = config.serving_window();
  const SamplingParams params = Sampling(directory, flags);
  TXL_RETURN_IF_ERROR(ValidateSamplingParams(params, config.vocab_size,
                                             directory.kinds != nullptr));
  TXL_ASSIGN_OR_RETURN(const std::vector<int32_t> prompt,
                       PromptIds(directory, flags));
  Generation generation(model, config);
  generation.Feed(prompt);
  const int64_t max_tokens = flags.max_tokens.value_or(
      directory.generation.max_tokens.value_or(kDefaultMaxTokens));
  TXL_RETURN_IF_ERROR(Stream(directory, max_tokens, params, generation));
  std::cout << "\n";
  std::cerr << "seed " << params.seed << "\n";
  return absl::OkStatus();
}

}  // namespace

Command AddGenerateCommand(CLI::App& app) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* sub = app.add_subcommand("generate",
                                     "Stream text; sampling defaults are those "
                                     "of generation.json, or else of the API");
  AddModelFlags(*sub, flags->model);
  SamplingOverrides& s = flags->sampling;
  sub->add_option("--prompt", flags->prompt,
                  "text, -: standard input [the model's start tokens]");
  AddUnknownFlag(*sub, &flags->unknown);
  sub->add_option("--max-tokens", flags->max_tokens,
                  "tokens to generate at most [generation.json, else 128]")
      ->check(AtLeast(1));
  sub->add_option("--temperature", s.temperature, "0: greedy [1]");
  sub->add_option("--top-k", s.top_k, "0: off [0]");
  sub->add_option("--top-p", s.top_p, "1: off [1]");
  sub->add_option("--min-p", s.min_p, "0: off [0]");
  sub->add_option("--typical-p", s.typical_p, "1: off [1]");
  sub->add_option("--repetition-penalty", s.repetition_penalty, "1: off [1]");
  sub->add_option("--presence-penalty", s.presence_penalty, "0: off [0]");
  sub->add_option("--frequency-penalty", s.frequency_penalty, "0: off [0]");
  sub->add_flag_callback(
      "--follow-kinds", [flags] { flags->sampling.follow_kinds = true; },
      "only tokens that kinds.json lets follow [off]");
  sub->add_option("--seed", s.seed, "seed of the draws [chosen and printed]");
  return {sub, [flags] { return RunGenerate(*flags); }};
}

}  // namespace txl
