// txl-model convert: a checkpoint of another code base becomes a model
// directory.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "absl/strings/str_format.h"
#include "model/base/status_macros.h"
#include "model/convert/convert.h"
#include "model/tool/checkpoint_facts.h"
#include "model/tool/command.h"

namespace txl {
namespace {

absl::Status RunConvert(const ConvertOptions& options) {
  TXL_ASSIGN_OR_RETURN(const ConvertReport report, Convert(options));
  PrintSummary(report.conversion, std::cout);
  std::cout << absl::StrFormat("%-18s %s\n", "vocabulary",
                               report.vocabulary.empty()
                                   ? "none (token ids only)"
                                   : report.vocabulary)
            << absl::StrFormat("%-18s %s\n", "written", options.directory);
  return absl::OkStatus();
}

}  // namespace

Command AddConvertCommand(CLI::App& app) {
  auto options = std::make_shared<ConvertOptions>();
  CLI::App* sub = app.add_subcommand(
      "convert", "Convert a Transformer-XL checkpoint to a model directory");
  sub->add_option("SOURCE", options->plan.source,
                  "checkpoint: a file or a folder")
      ->required();
  sub->add_option("DIR", options->directory,
                  "model directory to write; must not exist")
      ->required();
  AddPlanFlags(*sub, options->plan);
  sub->add_option("--tokenizer", options->tokenizer_path,
                  "vocabulary file [searched in and beside the checkpoint]");
  return {sub, [options] { return RunConvert(*options); }};
}

}  // namespace txl
