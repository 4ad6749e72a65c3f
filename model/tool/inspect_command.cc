// txl-model inspect: what a model directory or a checkpoint is.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/canonical_tensors.h"
#include "model/checkpoint/model_directory.h"
#include "model/checkpoint/safetensors.h"
#include "model/convert/plan_conversion.h"
#include "model/tool/checkpoint_facts.h"
#include "model/tool/command.h"

namespace txl {
namespace {

struct InspectFlags {
  PlanOptions plan;
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

int64_t Parameters(const SafetensorsReader& reader) {
  int64_t count = 0;
  for (const auto& [name, info] : reader.tensors()) count += info.numel();
  return count;
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

// Whether a config.json is of Hugging Face's configuration class, which ours
// never looks like.
bool IsForeignConfig(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto config = nlohmann::json::parse(file, nullptr, false);
  return config.is_object() &&
         (config.contains("model_type") || config.contains("pre_lnorm"));
}

// An empty folder counts: its error says what a model directory needs.
bool IsModelDirectory(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return false;
  const std::string config = path + "/config.json";
  if (!std::filesystem::exists(config, ignored)) {
    return std::filesystem::is_empty(path, ignored);
  }
  return !IsForeignConfig(config);
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
  return CheckpointFacts(conversion);
}

absl::Status RunInspect(const InspectFlags& flags) {
  TXL_ASSIGN_OR_RETURN(const nlohmann::ordered_json facts, Facts(flags));
  if (flags.json) {
    std::cout << facts.dump(1, ' ', false,
                            nlohmann::ordered_json::error_handler_t::replace)
              << "\n";
  } else {
    PrintFacts(facts, std::cout);
  }
  return absl::OkStatus();
}

}  // namespace

Command AddInspectCommand(CLI::App& app) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* sub = app.add_subcommand(
      "inspect",
      "shapes, parameters, bytes of weights and sessions in every form and "
      "number format of the CPU's step and, of a checkpoint, who said what");
  sub->add_option("PATH", flags->plan.source,
                  "model directory, or a checkpoint: a file or a folder")
      ->required()
      ->check(CLI::ExistingPath);
  AddPlanFlags(*sub, flags->plan);
  sub->add_flag("--json", flags->json);
  return {sub, [flags] { return RunInspect(*flags); }};
}

}  // namespace txl
