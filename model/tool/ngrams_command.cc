// txl-model ngrams: what a text's tokens usually follow, for servers that guess
// (model/text/ngram_table.h).

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/model_directory.h"
#include "model/text/ngram_table.h"
#include "model/tool/command.h"
#include "model/tool/model_flags.h"
#include "model/train/streams.h"
#include "program/command_line.h"
#include "program/flag_checks.h"

namespace txl {
namespace {

struct NgramsFlags {
  std::string directory, text;
  std::string out;      // "": in the directory
  std::string unknown;  // "": not given
  NgramOptions ngrams;
};

absl::Status RunNgrams(const NgramsFlags& flags) {
  const std::string out = flags.out.empty()
                              ? absl::StrCat(flags.directory, "/", kNgramsName)
                              : flags.out;
  std::vector<std::string> read = ModelFiles(flags.directory);
  read.push_back(flags.text);
  TXL_RETURN_IF_ERROR(CheckReplacesNone({out}, read));
  TXL_ASSIGN_OR_RETURN(const ModelDirectory directory,
                       OpenModelDirectory(flags.directory));
  if (directory.vocabulary == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        directory.path, ": has no tokenizer.json, so text cannot be read"));
  }
  if (directory.config.vocab_size > kMostNgramIds) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory.path, ": a table of n-grams holds ids below ",
                     kMostNgramIds, " only"));
  }
  TXL_ASSIGN_OR_RETURN(
      const std::vector<int32_t> ids,
      IdsOfFile(flags.text, *directory.vocabulary, flags.unknown));
  const NgramTable table = BuildNgrams(
      ids, VocabularyFingerprint(*directory.vocabulary), flags.ngrams);
  if (table.size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.text, ": holds nothing to train on"));
  }
  TXL_RETURN_IF_ERROR(table.Write(out));
  std::cout << out << ": " << table.size() << " n-grams of " << ids.size()
            << " tokens, " << table.bytes() << " bytes\n";
  return absl::OkStatus();
}

}  // namespace

Command AddNgramsCommand(CLI::App& app) {
  auto flags = std::make_shared<NgramsFlags>();
  CLI::App* sub =
      app.add_subcommand("ngrams",
                         "Write the table of n-grams from which a server on a "
                         "CPU guesses tokens ahead: the same text, sooner");
  sub->add_option("dir", flags->directory, "model directory")
      ->required()
      ->check(CLI::ExistingDirectory)
      ->option_text("DIR");
  sub->add_option("--text", flags->text,
                  "text like the model's output: its training text, or text "
                  "that it has generated")
      ->required()
      ->check(CLI::ExistingFile);
  AddUnknownFlag(*sub, &flags->unknown);
  sub->add_option("--order", flags->ngrams.order, "tokens of a context at most")
      ->check(WholeBetween(1, NgramTable::kMostOrder, INT32_MAX));
  sub->add_option(
         "--entries", flags->ngrams.entries,
         "n-grams to keep, most frequent first; each takes 12 to 24 bytes")
      ->check(WholeBetween(1, int64_t{1} << 28, INT64_MAX));
  sub->add_option("--out", flags->out, "file [ngrams.bin in the directory]");
  return {sub, [flags] { return RunNgrams(*flags); }};
}

}  // namespace txl
