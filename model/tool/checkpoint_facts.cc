#include "model/tool/checkpoint_facts.h"

#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "model/convert/family/choose_family.h"

namespace txl {
namespace {

using nlohmann::ordered_json;

std::string Text(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json Tensors(const ConversionPlan& plan) {
  ordered_json list = ordered_json::array();
  for (const auto& [name, info] : PlannedInfos(plan)) {
    list.push_back({{"name", name},
                    {"dtype", std::string(DTypeName(info.dtype))},
                    {"shape", info.shape}});
  }
  return list;
}

ordered_json Origins(const ConversionPlan& plan) {
  ordered_json origins = ordered_json::object();
  for (const auto& [field, planned] : plan.fields) {
    origins[field] = std::string(FieldOriginName(planned.origin));
  }
  return origins;
}

void PrintTensors(const ordered_json& tensors, std::ostream& out) {
  for (const auto& tensor : tensors) {
    out << absl::StrFormat("  %-24s %-4s %s\n", Text(tensor["name"]),
                           Text(tensor["dtype"]), Text(tensor["shape"]));
  }
}

// config with the origin of each field.
void PrintConfig(const ordered_json& facts, std::ostream& out) {
  for (const auto& [name, value] : facts["config"].items()) {
    const std::string origin =
        facts.contains("origins")
            ? Text(facts["origins"].value(name, ordered_json("")))
            : "";
    const std::string line =
        absl::StrFormat("  %-16s %-24s %s", name, Text(value), origin);
    out << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
  }
}

}  // namespace

void AddPlanFlags(CLI::App& app, PlanOptions& options) {
  app.add_option(
      "--format", options.format,
      "auto, " + absl::StrJoin(Families(), ", ",
                               [](std::string* text, const Family& family) {
                                 absl::StrAppend(text, family.id);
                               }));
  app.add_option("--spec", options.spec_path,
                 "file with fields of config.json that go before the "
                 "checkpoint's own")
      ->check(CLI::ExistingFile);
}

ordered_json MemoryBytes(const ModelConfig& config) {
  const int64_t elements = config.n_layer * config.mem_len * config.d_model;
  return {{"f32", elements * 4}, {"f16", elements * 2}, {"bf16", elements * 2}};
}

ordered_json CheckpointFacts(const PlannedConversion& conversion) {
  const ConversionPlan& plan = conversion.plan;
  return {{"kind", "checkpoint"},
          {"family", plan.family},
          {"container", conversion.checkpoint.container},
          {"parameters", UniqueParameters(plan)},
          {"serving_window", plan.config.serving_window()},
          {"memory_bytes_per_session", MemoryBytes(plan.config)},
          {"config", ordered_json::parse(ModelConfigToJson(plan.config))},
          {"origins", Origins(plan)},
          {"oddities", plan.oddities},
          {"tensors", Tensors(plan)}};
}

void PrintFacts(const ordered_json& facts, std::ostream& out) {
  for (const auto& [key, value] : facts.items()) {
    if (key == "origins") continue;  // stand beside the fields
    if (!value.is_structured()) {
      out << absl::StrFormat("%-18s %s\n", key, Text(value));
      continue;
    }
    if (value.empty()) continue;
    out << key << ":\n";
    if (key == "tensors") {
      PrintTensors(value, out);
    } else if (key == "config") {
      PrintConfig(facts, out);
    } else if (value.is_array()) {
      for (const auto& line : value) out << "  " << Text(line) << "\n";
    } else {
      for (const auto& [name, field] : value.items()) {
        out << absl::StrFormat("  %-16s %s\n", name, Text(field));
      }
    }
  }
}

void PrintSummary(const PlannedConversion& conversion, std::ostream& out) {
  ordered_json facts = CheckpointFacts(conversion);
  facts.erase("kind");
  facts.erase("tensors");
  PrintFacts(facts, out);
}

}  // namespace txl
