#include "model/convert/family/setting_type.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/config/json_fields.h"
#include "model/convert/family/places.h"

namespace txl {
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
