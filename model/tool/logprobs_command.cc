// txl-model logprobs: exact distributions of a token sequence, for comparison
// with other implementations.

#include <ATen/core/grad_mode.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "model/base/status_macros.h"
#include "model/text/ngram_table.h"
#include "model/tool/command.h"
#include "model/tool/model_flags.h"
#include "model/tool/token_feed.h"
#include "model/train/training_state.h"
#include "program/flag_checks.h"

namespace txl {
namespace {

struct LogprobsFlags {
  ModelFlags model;
  std::string tokens, out;
  std::string engine = "reference";
  std::string feed = "segments";
};

TensorFile Output(const FeedResult& result) {
  TensorFile file;
  file.tensors["logprobs"] = result.logprobs.to(at::kCPU, at::kDouble);
  if (result.memory.defined()) {
    file.tensors["memory"] = result.memory.to(at::kCPU, at::kDouble);
  }
  return file;
}

absl::Status RunLogprobs(const LogprobsFlags& flags) {
  const at::NoGradGuard no_grad;
  const std::string& folder = flags.model.directory;
  std::vector<std::string> read = ModelFiles(folder);
  read.insert(read.end(), {flags.tokens, folder + "/" + kNgramsName});
  TXL_RETURN_IF_ERROR(CheckReplacesNone({flags.out}, read));
  TXL_ASSIGN_OR_RETURN(OpenModel model, OpenModelOf(flags.model));
  TXL_ASSIGN_OR_RETURN(const TensorFile file, ReadTensorFile(flags.tokens));
  TXL_ASSIGN_OR_RETURN(const TokenFeed feed,
                       MakeTokenFeed(file, model.directory.config.vocab_size,
                                     flags.feed == "segments", flags.tokens));
  if (flags.engine == "reference") {
    const ReferenceNetwork network(model.directory.config,
                                   std::move(model.weights));
    return WriteTensorFile(flags.out, Output(FeedReference(network, feed)));
  }
  TXL_ASSIGN_OR_RETURN(
      const FeedResult result,
      FeedServing(model.directory.config, std::move(model.weights), feed));
  return WriteTensorFile(flags.out, Output(result));
}

}  // namespace

Command AddLogprobsCommand(CLI::App& app) {
  auto flags = std::make_shared<LogprobsFlags>();
  CLI::App* sub = app.add_subcommand(
      "logprobs",
      "Write the log-probabilities of every next token of a sequence");
  AddModelFlags(*sub, flags->model);
  sub->add_option("--tokens", flags->tokens,
                  "safetensors file: tokens I64 [T] and, for segments, "
                  "segments I64 [S]")
      ->required()
      ->check(CLI::ExistingFile);
  sub->add_option("--out", flags->out,
                  "safetensors file: logprobs F64 [T, V] and, for the "
                  "reference engine, memory F64 [L, m, d]")
      ->required();
  sub->add_option(
         "--engine", flags->engine,
         "reference: the paper's forward pass, segment by segment; serving: "
         "the server's step, whose values do not depend on the cuts")
      ->transform(OneOf({"reference", "serving"}));
  sub->add_option("--feed", flags->feed,
                  "segments: calls with the lengths in the file; stepwise: one "
                  "token per call")
      ->transform(OneOf({"segments", "stepwise"}));
  return {sub, [flags] { return RunLogprobs(*flags); }};
}

}  // namespace txl
