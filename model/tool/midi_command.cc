// txl-model midi: a MIDI file as the token ids of a music model.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/model_directory.h"
#include "model/music/midi_encoder.h"
#include "model/tool/command.h"

namespace txl {
namespace {

struct MidiFlags {
  std::string directory, file;
};

absl::Status RunMidi(const MidiFlags& flags) {
  TXL_ASSIGN_OR_RETURN(const ModelDirectory directory,
                       OpenModelDirectory(flags.directory));
  if (directory.vocabulary == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory.path, ": has no tokenizer.json"));
  }
  TXL_ASSIGN_OR_RETURN(const MidiEncoder encoder,
                       MidiEncoder::Make(*directory.vocabulary));
  TXL_ASSIGN_OR_RETURN(const std::string bytes,
                       ReadRegularFile(flags.file, kMostMidiBytes));
  const absl::StatusOr<MidiIds> found = encoder.Encode(bytes);
  if (!found.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flags.file, ": ", found.status().message()));
  }
  nlohmann::json left_out = nlohmann::json::object();
  for (const LeftOut& each : found->left_out) {
    left_out[each.what] = each.count;
  }
  std::cout << nlohmann::json{{"ids", found->ids}, {"left_out", left_out}}
            << "\n";
  return absl::OkStatus();
}

}  // namespace

Command AddMidiCommand(CLI::App& app) {
  auto flags = std::make_shared<MidiFlags>();
  CLI::App* sub = app.add_subcommand(
      "midi",
      "Print a MIDI file as the token ids of a music model, and what of the "
      "file they leave out, as JSON");
  sub->add_option("dir", flags->directory, "model directory")
      ->required()
      ->check(CLI::ExistingDirectory)
      ->option_text("DIR");
  sub->add_option("file", flags->file, "Standard MIDI File, format 0 or 1")
      ->required()
      ->check(CLI::ExistingFile)
      ->option_text("FILE");
  return {sub, [flags] { return RunMidi(*flags); }};
}

}  // namespace txl
