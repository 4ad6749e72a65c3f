#include "model/convert/family/config_draft.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/config/config_keys.h"
#include "model/config/json_fields.h"

namespace txl {
namespace {

using nlohmann::json;

// Fields for which null says something: no limit.
bool NullIsAValue(absl::string_view field) {
  return field == "window" || field == "clamp_len";
}

// Strings of a checkpoint may be ill-formed UTF-8.
std::string Text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Who contradicts the weights.
absl::string_view Sayer(FieldOrigin origin) {
  switch (origin) {
    case FieldOrigin::kSpec:
      return "the spec says ";
    case FieldOrigin::kCheckpoint:
      return "the checkpoint's configuration says ";
    default:
      return "other tensors show ";
  }
}

}  // namespace

ConfigDraft::ConfigDraft(const json& spec) {
  if (spec.is_null()) return;
  if (!spec.is_object()) {
    status_ = absl::InvalidArgumentError("the spec is no JSON object");
    return;
  }
  for (const std::string& field : ModelConfigFields()) {
    const auto it = spec.find(field);
    if (it == spec.end() || (it->is_null() && !NullIsAValue(field))) continue;
    Set(field, *it, FieldOrigin::kSpec);
  }
}

void ConfigDraft::Set(absl::string_view field, json value, FieldOrigin origin) {
  fields_[std::string(field)] = {WithWholeNumbers(std::move(value)), origin};
}

void ConfigDraft::FromWeights(absl::string_view field, json value) {
  const auto it = fields_.find(field);
  const bool said =
      it != fields_.end() && it->second.origin != FieldOrigin::kFamily;
  if (said && it->second.value != value && status_.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat(
        "field ", field, ": ", Sayer(it->second.origin), Text(it->second.value),
        ", the weights show ", Text(value)));
  }
  Set(field, std::move(value), FieldOrigin::kWeights);
}

void ConfigDraft::FromCheckpoint(absl::string_view field, json value) {
  if (value.is_discarded()) return;
  const auto it = fields_.find(field);
  if (it != fields_.end() && it->second.origin != FieldOrigin::kFamily) return;
  Set(field, std::move(value), FieldOrigin::kCheckpoint);
}

void ConfigDraft::FamilyDefault(absl::string_view field, json value) {
  if (fields_.find(field) != fields_.end()) return;
  Set(field, std::move(value), FieldOrigin::kFamily);
}

json ConfigDraft::Get(absl::string_view field) const {
  const auto it = fields_.find(field);
  return it == fields_.end() ? json() : it->second.value;
}

int64_t ConfigDraft::Int(absl::string_view field, int64_t fallback) const {
  const json value = Get(field);
  return value.is_number_integer() ? value.get<int64_t>() : fallback;
}

bool ConfigDraft::Bool(absl::string_view field, bool fallback) const {
  const json value = Get(field);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

absl::Status ConfigDraft::Finish(absl::string_view origin,
                                 ConversionPlan& plan) const {
  if (!status_.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": ", status_.message()));
  }
  json object = json::object();
  for (const auto& [field, planned] : fields_) object[field] = planned.value;
  TXL_ASSIGN_OR_RETURN(plan.config, ParseModelConfig(Text(object), origin));
  plan.fields.clear();
  const json parsed = json::parse(ModelConfigToJson(plan.config));
  for (const auto& [field, value] : parsed.items()) {
    const auto it = fields_.find(field);
    plan.fields[field] = {
        value, it == fields_.end() ? FieldOrigin::kFamily : it->second.origin};
  }
  return absl::OkStatus();
}

}  // namespace txl
