// txl-model inspect: what a model directory is.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/canonical_tensors.h"
#include "model/checkpoint/model_directory.h"
#include "model/checkpoint/safetensors.h"
#include "model/tool/command.h"

namespace txl {
namespace {

struct InspectFlags {
  std::string path;
  bool json = false;
};

nlohmann::ordered_json MemoryBytes(const ModelConfig& config) {
  const int64_t elements = config.n_layer * config.mem_len * config.d_model;
  return {{"f32", elements * 4}, {"f16", elements * 2}, {"bf16", elements * 2}};
}

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
  return {
      {"kind", "model directory"},
      {"name", directory.name},
      {"fingerprint", directory.fingerprint},
      {"vocabulary", vocabulary == nullptr ? "none (token ids only)"
                                           : std::string(vocabulary->kind())},
      {"parameters", Parameters(reader)},
      {"serving_window", directory.config.serving_window()},
      {"memory_bytes_per_session", MemoryBytes(directory.config)},
      {"config",
       nlohmann::ordered_json::parse(ModelConfigToJson(directory.config))},
      {"tensors", Tensors(reader)}};
}

void PrintText(const nlohmann::ordered_json& facts) {
  const auto text = [](const nlohmann::ordered_json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  for (const auto& [key, value] : facts.items()) {
    if (key == "config" || key == "memory_bytes_per_session") {
      std::cout << key << ":\n";
      for (const auto& [name, field] : value.items()) {
        std::cout << absl::StrFormat("  %-16s %s\n", name, text(field));
      }
    } else if (key == "tensors") {
      std::cout << key << ":\n";
      for (const auto& tensor : value) {
        std::cout << absl::StrFormat("  %-24s %-4s %s\n", text(tensor["name"]),
                                     text(tensor["dtype"]),
                                     text(tensor["shape"]));
      }
    } else {
      std::cout << absl::StrFormat("%-18s %s\n", key, text(value));
    }
  }
}

absl::Status RunInspect(const InspectFlags& flags) {
  TXL_ASSIGN_OR_RETURN(const ModelDirectory directory,
                       OpenModelDirectory(flags.path));
  const std::string file = flags.path + "/model.safetensors";
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<SafetensorsReader> reader,
                       SafetensorsReader::Open(file));
  TXL_RETURN_IF_ERROR(
      CheckCanonicalTensors(directory.config, reader->tensors(), file));
  const nlohmann::ordered_json facts = Describe(directory, *reader);
  if (flags.json) {
    std::cout << facts.dump(1) << "\n";
  } else {
    PrintText(facts);
  }
  return absl::OkStatus();
}

}  // namespace

Command AddInspectCommand(CLI::App& app) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* sub = app.add_subcommand(
      "inspect",
      "shapes, parameters and memory per session of a model directory");
  sub->add_option("PATH", flags->path)
      ->required()
      ->check(CLI::ExistingDirectory);
  sub->add_flag("--json", flags->json);
  return {sub, [flags] { return RunInspect(*flags); }};
}

}  // namespace txl
