#include "model/convert/family/own_settings.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/config/json_fields.h"
#include "model/convert/family/plan_builder.h"

namespace txl {
namespace {

using nlohmann::json;

struct Setting {
  const char* name;
  SettingType type;
};
constexpr Setting kSettings[] = {
    {"n_token", SettingType::kInt},     {"n_layer", SettingType::kInt},
    {"n_head", SettingType::kInt},      {"d_head", SettingType::kInt},
    {"d_model", SettingType::kInt},     {"d_embed", SettingType::kInt},
    {"d_inner", SettingType::kInt},     {"pre_lnorm", SettingType::kFlag},
    {"attn_type", SettingType::kInt},   {"same_length", SettingType::kFlag},
    {"mem_len", SettingType::kInt},     {"ext_len", SettingType::kInt},
    {"clamp_len", SettingType::kInt},   {"cutoffs", SettingType::kInts},
    {"div_val", SettingType::kInt},     {"tie_weight", SettingType::kFlag},
    {"tie_projs", SettingType::kFlags},
};

// A whole module keeps its choices in parts.
void OverlayModule(const NativeCheckpoint& checkpoint, const std::string& place,
                   TensorTable& table, json& to) {
  const json* root = ObjectAt(checkpoint.data, place);
  if (root == nullptr || !root->contains(kClassKey)) return;
  OverlaySettings(root, absl::StrCat("field ", place), table, to);
  const json* attention =
      ObjectAt(checkpoint.data, place + "layers.0.dec_attn");
  const json* norm =
      ObjectAt(checkpoint.data, place + "layers.0.dec_attn.layer_norm");
  const json* words = ObjectAt(checkpoint.data, place + "word_emb");
  const auto copy = [&](const json* from, const char* part, const char* key,
                        SettingType type, const char* as) {
    json value = TypedMember(from, key, type,
                             absl::StrCat("field ", place, part), table);
    if (!value.is_discarded()) to[as] = std::move(value);
  };
  copy(attention, "layers.0.dec_attn.", "pre_lnorm", SettingType::kFlag,
       "pre_lnorm");
  copy(norm, "layers.0.dec_attn.layer_norm.", "eps", SettingType::kNumber,
       "ln_eps");
  copy(words, "word_emb.", "div_val", SettingType::kInt, "div_val");
  copy(words, "word_emb.", "cutoffs", SettingType::kInts, "cutoffs");
  // The module's list ends with the size of the vocabulary.
  if (json& cutoffs = to["cutoffs"]; cutoffs.is_array() && !cutoffs.empty()) {
    cutoffs.erase(cutoffs.size() - 1);
  }
}

void ApplySizes(const json& settings, ConfigDraft& draft) {
  const auto set = [&](const char* field, const char* name) {
    draft.FromCheckpoint(field, Member(&settings, name));
  };
  set("vocab_size", "n_token");
  for (const char* name : {"n_layer", "n_head", "d_head", "d_model", "d_embed",
                           "d_inner", "cutoffs", "div_val", "tie_weight",
                           "tie_projs", "clamp_len", "mem_len", "ln_eps"}) {
    set(name, name);
  }
}

void RefuseUnsupported(const json& settings, const json& spec,
                       PlanBuilder& builder) {
  const json attention = Member(&settings, "attn_type");
  if (attention.is_number() && attention != 0 && attention != 1) {
    builder.table.Fail(absl::StrCat("attn_type ", attention.dump(),
                                    " (absolute positions) is not supported"));
  }
  json ext_len = TypedMember(&spec, "ext_len", SettingType::kInt,
                             "the spec's field ", builder.table);
  if (ext_len.is_discarded()) ext_len = Member(&settings, "ext_len");
  if (ext_len.is_number() && ext_len != 0) {
    builder.table.Fail(absl::StrCat("ext_len ", ext_len.dump(),
                                    " is not supported; a --spec with ext_len "
                                    "0 replaces it"));
  }
}

void ApplyWindow(const json& settings, const WindowRule& rule,
                 PlanBuilder& builder) {
  ConfigDraft& draft = builder.draft;
  const json said = Member(&settings, "same_length");
  const bool same_length =
      said.is_boolean() ? said.get<bool>() : rule.same_length;
  json window;
  if (same_length) window = draft.Int("mem_len", 0) + rule.beyond_mem_len;
  if (said.is_boolean()) {
    draft.FromCheckpoint("window", window);
  } else {
    draft.FamilyDefault("window", window);
  }
  // A mem_len of another type is named at the end.
  if (draft.Get("window") == 0 && draft.Int("mem_len", 1) == 0) {
    builder.table.Fail(
        "same_length with mem_len 0 shows no key at all; give mem_len with "
        "--spec");
  }
}

}  // namespace

void OverlaySettings(const json* from, absl::string_view place,
                     TensorTable& table, json& to) {
  if (from == nullptr) return;
  for (const Setting& setting : kSettings) {
    json value = TypedMember(from, setting.name, setting.type, place, table);
    if (!value.is_discarded()) to[setting.name] = std::move(value);
  }
}

json OwnSettings(const NativeCheckpoint& checkpoint, const std::string& place,
                 TensorTable& table) {
  json settings = json::object();
  const json* args = ObjectAt(checkpoint.data, "args");
  OverlaySettings(args, "field args.", table, settings);
  const json not_tied =
      TypedMember(args, "not_tied", SettingType::kFlag, "field args.", table);
  if (not_tied.is_boolean()) settings["tie_weight"] = !not_tied.get<bool>();
  for (const char* part : {"model_config", "model_setting"}) {
    OverlaySettings(ObjectAt(checkpoint.data, part),
                    absl::StrCat("field ", part, "."), table, settings);
  }
  OverlayModule(checkpoint, place, table, settings);
  return settings;
}

void NoteSettings(const json& settings, PlanBuilder& builder) {
  if (settings.empty()) {
    builder.Note(
        "the file has no configuration: norm, clamp_len, window and mem_len "
        "are defaults, or the spec's");
  } else {
    builder.Note(
        "clamp_len, window and mem_len of the file are those of training; "
        "evaluation often takes others (--spec)");
  }
}

void ApplySettings(const json& settings, const json& spec,
                   const WindowRule& rule, int64_t mem_len,
                   PlanBuilder& builder) {
  RefuseUnsupported(settings, spec, builder);
  ConfigDraft& draft = builder.draft;
  ApplySizes(settings, draft);
  json norm = Member(&settings, "pre_lnorm");
  if (norm.is_boolean()) norm = norm.get<bool>() ? "pre" : "post";
  draft.FromCheckpoint("norm", std::move(norm));
  draft.FamilyDefault("norm", "post");
  draft.FamilyDefault("final_norm", false);
  draft.FamilyDefault("ln_eps", 1e-5);
  draft.FamilyDefault("act", "relu");
  draft.FamilyDefault("ff_out_act", "none");
  draft.FamilyDefault("clamp_len", -1);
  draft.FamilyDefault("mem_len", mem_len);
  draft.FamilyDefault("mem_init", "empty");
  draft.FamilyDefault("emb_scale", "sqrt_d");
  ApplyWindow(settings, rule, builder);
}

namespace {

using nlohmann::json;

json None() { return json(json::value_t::discarded); }

absl::string_view Wanted(SettingType type) {
  switch (type) {
    case SettingType::kFlag:
      return "true or false";
    case SettingType::kInt:
      return "an integer";
    case SettingType::kNumber:
      return "a finite number";
    case SettingType::kFlags:
      return "a list of true and false";
    case SettingType::kInts:
      return "a list of integers";
  }
  return "";
}

// Discarded where the value is none.
json AsFlag(const json& value) {
  if (value.is_boolean()) return value;
  if (value.is_number_integer() && (value == 0 || value == 1)) {
    return value == 1;
  }
  return None();
}

json AsType(const json& value, SettingType type) {
  switch (type) {
    case SettingType::kFlag:
      return AsFlag(value);
    case SettingType::kInt:
      return value.is_number_integer() ? value : None();
    case SettingType::kNumber:
      return value.is_number() && std::isfinite(value.get<double>()) ? value
                                                                     : None();
    case SettingType::kFlags:
    case SettingType::kInts:
      break;
  }
  if (!value.is_array()) return None();
  json list = json::array();
  for (const json& item : value) {
    json typed = AsType(item, type == SettingType::kFlags ? SettingType::kFlag
                                                          : SettingType::kInt);
    if (typed.is_discarded()) return None();
    list.push_back(std::move(typed));
  }
  return list;
}

// In one line of ASCII, never long.
std::string Shown(const json& value) {
  constexpr size_t kMost = 80;
  return value.dump(-1, ' ', true, json::error_handler_t::replace)
      .substr(0, kMost);
}

}  // namespace

json TypedMember(const json* object, absl::string_view key, SettingType type,
                 absl::string_view place, TensorTable& table) {
  const json value = WithWholeNumbers(Member(object, key));
  if (value.is_discarded()) return None();
  json typed = AsType(value, type);
  if (typed.is_discarded()) {
    table.Fail(absl::StrCat(place, key, " is ", Shown(value), ", must be ",
                            Wanted(type)));
  }
  return typed;
}

}  // namespace txl
