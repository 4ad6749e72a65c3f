// txl-model inspect: what a model directory or a checkpoint is.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/canonical_tensors.h"
#include "model/checkpoint/model_directory.h"
#include "model/checkpoint/safetensors.h"
#include "model/convert/convert.h"
#include "model/convert/vocabulary/vocabulary_files.h"
#include "model/tool/checkpoint_facts.h"
#include "model/tool/command.h"

namespace txl {
namespace {

struct InspectFlags {
  PlanOptions plan;
  bool tensors = false;
  bool json = false;
};

nlohmann::ordered_json Tensors(const SafetensorsReader& reader) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [name, info] : reader.tensors()) {
    list.push_back({{"name", name},
                    {"dtype", std::string(DTypeName(info.dtype))},
                    {"shape", info.shape}});
  }
  return list;
}

// Whether a layer's tensor is the one that the first layer has: position biases
// that checkpoints have once for all layers.
bool IsShared(const SafetensorsReader& reader, const std::string& name,
              const TensorInfo& info) {
  if (!absl::EndsWith(name, ".u") && !absl::EndsWith(name, ".v")) return false;
  const auto first =
      reader.tensors().find("layer.0" + name.substr(name.size() - 2));
  return first != reader.tensors().end() && first->first != name &&
         reader.Bytes(first->second) == reader.Bytes(info);
}

// What CheckpointFacts counts of the checkpoint that the directory comes from.
int64_t Parameters(const SafetensorsReader& reader) {
  int64_t count = 0;
  for (const auto& [name, info] : reader.tensors()) {
    const bool counts = name != "pos.inv_freq" && !IsShared(reader, name, info);
    if (counts) count += info.numel();
  }
  return count;
}

// What a conversion would find, for people.
std::string VocabularyOf(const PlannedConversion& conversion) {
  const absl::StatusOr<VocabularyFiles> found =
      FindVocabulary({conversion.plan.family, conversion.checkpoint, "",
                      conversion.plan.config.vocab_size});
  if (!found.ok()) {
    return absl::StrCat("cannot be used: ", found.status().message());
  }
  return found->source.empty() ? "none found (token ids only)" : found->source;
}

nlohmann::ordered_json Describe(const ModelDirectory& directory,
                                const SafetensorsReader& reader) {
  const auto& vocabulary = directory.vocabulary;
  nlohmann::ordered_json facts = {
      {"kind", "model directory"},
      {"name", directory.name},
      {"fingerprint", directory.fingerprint},
      {"vocabulary", vocabulary == nullptr ? "none (token ids only)"
                                           : std::string(vocabulary->kind())},
      {"parameters", Parameters(reader)},
      {"serving_window", directory.config.serving_window()},
      {"memory_bytes_per_session", MemoryBytes(directory.config)}};
  facts.update(NativeFacts(directory.config, reader.tensors()));
  facts["config"] =
      nlohmann::ordered_json::parse(ModelConfigToJson(directory.config));
  facts["tensors"] = Tensors(reader);
  return facts;
}

// An empty folder counts: its error says what a model directory needs.
bool IsModelDirectory(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return false;
  const std::string config = path + "/config.json";
  if (!std::filesystem::exists(config, ignored)) {
    return std::filesystem::is_empty(path, ignored);
  }
  const auto text = ReadRegularFile(config, RegularFile::kAnySize);
  return !text.ok() || !IsForeignConfig(*text);
}

absl::StatusOr<nlohmann::ordered_json> DirectoryFacts(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(const ModelDirectory directory,
                       OpenModelDirectory(path));
  const std::string file = path + "/model.safetensors";
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsReader> reader,
                       SafetensorsReader::Open(file));
  TXL_RETURN_IF_ERROR(
      CheckCanonicalTensors(directory.config, reader->tensors(), file));
  return Describe(directory, *reader);
}

absl::StatusOr<nlohmann::ordered_json> Facts(const InspectFlags& flags) {
  if (IsModelDirectory(flags.plan.source)) {
    return DirectoryFacts(flags.plan.source);
  }
  TXL_ASSIGN_OR_RETURN(const PlannedConversion conversion,
                       PlanConversion(flags.plan));
  nlohmann::ordered_json facts = {{"kind", "checkpoint"},
                                  {"vocabulary", VocabularyOf(conversion)}};
  facts.update(CheckpointFacts(conversion));
  return facts;
}

absl::Status RunInspect(const InspectFlags& flags) {
  TXL_ASSIGN_OR_RETURN(const nlohmann::ordered_json facts, Facts(flags));
  if (flags.json) {
    std::cout << facts.dump(1, ' ', false,
                            nlohmann::ordered_json::error_handler_t::replace)
              << "\n";
  } else {
    PrintFacts(facts, flags.tensors, std::cout);
  }
  return absl::OkStatus();
}

}  // namespace

Command AddInspectCommand(CLI::App& app) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* sub = app.add_subcommand(
      "inspect",
      "Print shapes, parameters, and bytes of weights and sessions in every "
      "form and number format of the CPU step; for a checkpoint also the "
      "origin of each setting");
  sub->add_option("PATH", flags->plan.source,
                  "model directory, or a checkpoint: a file or a folder")
      ->required()
      ->check(CLI::ExistingPath);
  AddPlanFlags(*sub, flags->plan);
  sub->add_flag("--tensors", flags->tensors, "also list the tensors");
  sub->add_flag("--json", flags->json);
  return {sub, [flags] { return RunInspect(*flags); }};
}

}  // namespace txl
