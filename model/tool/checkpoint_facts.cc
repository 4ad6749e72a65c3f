#include "model/tool/checkpoint_facts.h"

#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "model/base/number_format.h"
#include "model/convert/family/family.h"
#include "model/cpu/attention_form.h"
#include "model/cpu/native_step.h"
#include "model/cpu/native_weights.h"
#include "model/cpu/panel_product.h"
#include "model/tool/model_flags.h"

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

// "1.5 MiB": numbers of bytes as people read them, in objects too.
ordered_json Readable(const ordered_json& bytes) {
  if (bytes.is_object()) {
    ordered_json readable = ordered_json::object();
    for (const auto& [name, value] : bytes.items()) {
      readable[name] = Readable(value);
    }
    return readable;
  }
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double size = bytes.get<double>();
  size_t unit = 0;
  for (; size >= 1024 && unit + 1 < std::size(kUnits); ++unit) size /= 1024;
  return absl::StrFormat("%.*f %s", unit == 0 ? 0 : 1, size, kUnits[unit]);
}

void PrintTensors(const ordered_json& tensors, std::ostream& out) {
  for (const auto& tensor : tensors) {
    out << absl::StrFormat("  %-24s %-4s %s\n", Text(tensor["name"]),
                           Text(tensor["dtype"]), Text(tensor["shape"]));
  }
}

// "name value, name value" of an object; else the value.
std::string InlineText(const ordered_json& value) {
  if (!value.is_object()) return Text(value);
  std::string line;
  for (const auto& [name, field] : value.items()) {
    absl::StrAppend(&line, line.empty() ? "" : ", ", name, " ", Text(field));
  }
  return line;
}

int64_t SlotBytes(const ModelConfig& config, const NativeFormats& formats) {
  return NativeStepSlotBytes(config, NativeStepOptions().spare_rows, formats);
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
  app.add_option(
         "--spec", options.spec_path,
         "file with fields of config.json that override the checkpoint's own")
      ->check(CLI::ExistingFile);
}

ordered_json MemoryBytes(const ModelConfig& config) {
  const int64_t elements = config.n_layer * config.mem_len * config.d_model;
  return {{"f32", elements * 4}, {"f16", elements * 2}, {"bf16", elements * 2}};
}

ordered_json NativeFacts(const ModelConfig& config,
                         const std::map<std::string, TensorInfo>& tensors) {
  ordered_json weights, keys, forms, slots;
  for (const NamedForm& form : kForms) {
    for (const NamedFormat& named : kWeightFormats) {
      weights[form.name][named.name] =
          NativeWeightBytes(config, tensors, form.form, named.format);
    }
  }
  for (const NamedFormat& memory : kRowFormats) {
    const std::string row = absl::StrCat("memory_", memory.name);
    slots[row]["absorbed"] = SlotBytes(
        config, {.memory = memory.format, .form = AttentionForm::kAbsorbed});
    for (const NamedFormat& derived : kRowFormats) {
      NativeFormats formats;
      formats.memory = memory.format;
      formats.derived = derived.format;
      forms[row][absl::StrCat("derived_", derived.name)] =
          FormName(ResolveForm(config, formats));
      formats.form = AttentionForm::kProjected;
      slots[row][absl::StrCat("projected_", derived.name)] =
          SlotBytes(config, formats);
    }
  }
  for (const NamedFormat& derived : kRowFormats) {
    keys[derived.name] = NativePositionKeyBytes(config, derived.format);
  }
  return {{"native_form", std::move(forms)},
          {"native_weight_bytes", std::move(weights)},
          {"native_position_key_bytes", std::move(keys)},
          {"native_slot_bytes", std::move(slots)}};
}

ordered_json CheckpointFacts(const PlannedConversion& conversion) {
  const ConversionPlan& plan = conversion.plan;
  ordered_json facts = {{"kind", "checkpoint"},
                        {"family", plan.family},
                        {"container", conversion.checkpoint.container},
                        {"parameters", UniqueParameters(plan)},
                        {"serving_window", plan.config.serving_window()},
                        {"memory_bytes_per_session", MemoryBytes(plan.config)}};
  facts.update(NativeFacts(plan.config, PlannedInfos(plan)));
  facts["config"] = ordered_json::parse(ModelConfigToJson(plan.config));
  facts["origins"] = Origins(plan);
  facts["oddities"] = plan.oddities;
  facts["tensors"] = Tensors(plan);
  return facts;
}

void PrintFacts(const ordered_json& facts, bool tensors, std::ostream& out) {
  for (const auto& [key, exact] : facts.items()) {
    if (key == "origins") continue;  // stand beside the fields
    if (key == "tensors" && !tensors) {
      out << absl::StrFormat("%-18s %d (--tensors lists them)\n", key,
                             exact.size());
      continue;
    }
    const ordered_json value =
        absl::StrContains(key, "bytes") ? Readable(exact) : exact;
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
        out << absl::StrFormat("  %-16s %s\n", name, InlineText(field));
      }
    }
  }
}

void PrintSummary(const PlannedConversion& conversion, std::ostream& out) {
  ordered_json facts = CheckpointFacts(conversion);
  for (const char* key :
       {"kind", "native_form", "native_weight_bytes",
        "native_position_key_bytes", "native_slot_bytes", "tensors"}) {
    facts.erase(key);
  }
  PrintFacts(facts, /*tensors=*/false, out);
}

namespace {

constexpr int64_t kFloatBytes = sizeof(float);

int64_t BiasBytes(int64_t outputs) {
  return RoundUp(outputs, kPanel) * kFloatBytes;
}

int64_t NormBytes(const ModelConfig& c) {
  return 2 * RoundUp(c.d_model, kPanel) * kFloatBytes;
}

// wk, wv and bv.
int64_t KeyValueBytes(const ModelConfig& c, AttentionForm form, bool has_bias,
                      NumberFormat format) {
  const int64_t width = c.n_head * c.d_head;
  if (form == AttentionForm::kProjected) {
    return PackedMatrix::BytesOf(2 * width, c.d_model, format) +
           (has_bias ? BiasBytes(2 * width) : 0);
  }
  return c.n_head * (PackedMatrix::BytesOf(c.d_model, c.d_head, format) +
                     PackedMatrix::BytesOf(c.d_head, c.d_model, format)) +
         (has_bias ? width * kFloatBytes : 0);
}

// Every layer has the tensors of layer 0.
int64_t LayerBytes(const ModelConfig& c,
                   const std::map<std::string, TensorInfo>& tensors,
                   AttentionForm form, NumberFormat format) {
  const int64_t width = c.n_head * c.d_head;
  const bool has_table = c.pos == PositionKind::kTable;
  int64_t bytes =
      PackedMatrix::BytesOf(width, c.d_model, format) +  // wq
      KeyValueBytes(c, form, tensors.contains("layer.0.bv"), format) +
      PackedMatrix::BytesOf(c.d_model, width, format) +  // wo
      PackedMatrix::BytesOf(c.d_inner, c.d_model, format) +
      PackedMatrix::BytesOf(c.d_model, c.d_inner, format) +
      BiasBytes(c.d_inner) + BiasBytes(c.d_model) +
      (has_table ? 1 : 2) * width * kFloatBytes +  // u, v
      2 * NormBytes(c);
  if (tensors.contains("layer.0.bq")) bytes += BiasBytes(width);
  if (tensors.contains("layer.0.bo")) bytes += BiasBytes(c.d_model);
  return bytes;
}

int64_t BinBytes(const ModelConfig& c, int64_t bin,
                 const std::map<std::string, TensorInfo>& tensors,
                 NumberFormat format) {
  const int64_t words = c.bin_size(bin), width = c.bin_width(bin);
  const int64_t clusters = bin == 0 ? c.n_bins() - 1 : 0;
  int64_t bytes = PackedMatrix::BytesOf(words + clusters, width, format);
  if (c.head_bias || clusters > 0) bytes += BiasBytes(words + clusters);
  if (!c.tie_weight) bytes += PackedMatrix::BytesOf(words, width, format);
  if (tensors.contains(absl::StrCat("emb.", bin, ".proj"))) {
    bytes += PackedMatrix::BytesOf(c.d_model, width, format) +
             PackedMatrix::BytesOf(width, c.d_model, format);
  }
  return bytes;
}

}  // namespace

int64_t NativeWeightBytes(const ModelConfig& config,
                          const std::map<std::string, TensorInfo>& tensors,
                          AttentionForm form, NumberFormat format) {
  int64_t bytes = config.n_layer * LayerBytes(config, tensors, form, format);
  for (int64_t bin = 0; bin < config.n_bins(); ++bin) {
    bytes += BinBytes(config, bin, tensors, BinFormat(format));
  }
  if (config.final_norm) bytes += NormBytes(config);
  return bytes + config.beat_rows() * config.d_model * kFloatBytes;
}

int64_t NativePositionKeyBytes(const ModelConfig& config,
                               NumberFormat derived) {
  const int64_t distances = config.position_distances();
  int64_t head_bytes = PackedMatrix::BytesOf(
      distances, config.d_head, derived,
      derived == NumberFormat::kInt8 ? Products::kInteger : Products::kFloat);
  if (config.pos == PositionKind::kTable) head_bytes += BiasBytes(distances);
  return config.n_layer * config.n_head * head_bytes;
}

}  // namespace txl
