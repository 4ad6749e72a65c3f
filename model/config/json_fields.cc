#include "model/config/json_fields.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "program/nearest_name.h"

namespace txl {
namespace {

// Text of a file as it may stand in a message: one line, never long.
std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, 80)), "\"");
}

// Reads JSON without building it and stops at what ParseJsonObject refuses.
// (nlohmann's own parser callbacks are no way to do it: with them the parser
// takes time quadratic in the number of an object's members.)
class Checker final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Checker(int max_depth) : max_depth_(max_depth) {}
  const std::string& problem() const { return problem_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override {
    keys_.emplace_back();
    return Open();
  }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    problem_ = absl::StrCat("has the key ", Quoted(name), " twice");
    return false;
  }
  bool end_object() override {
    keys_.pop_back();
    return Close();
  }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    problem_ = absl::StrCat("is not valid JSON in UTF-8 at byte ", position);
    return false;
  }

 private:
  bool Open() {
    if (++depth_ <= max_depth_) return true;
    problem_ = "is nested too deeply";
    return false;
  }
  bool Close() {
    --depth_;
    return true;
  }

  const int max_depth_;
  int depth_ = 0;
  std::vector<std::set<std::string>> keys_;  // of the open objects
  std::string problem_;
};

}  // namespace

using nlohmann::json;

absl::StatusOr<json> ParseJsonObject(absl::string_view text,
                                     absl::string_view origin, int max_depth) {
  Checker checker(max_depth);
  json::sax_parse(text.begin(), text.end(), &checker);
  if (!checker.problem().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": ", checker.problem()));
  }
  json value = json::parse(text.begin(), text.end(), nullptr,
                           /*allow_exceptions=*/false);
  if (!value.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": is not a JSON object"));
  }
  return value;
}

json WithWholeNumbers(json value) {
  // Beyond it, neighbouring numbers are the same double.
  constexpr double kMost = 9007199254740991;  // 2^53 - 1
  if (value.is_array()) {
    for (json& item : value) item = WithWholeNumbers(std::move(item));
  } else if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::abs(number) <= kMost && std::trunc(number) == number) {
      return static_cast<int64_t>(number);
    }
  }
  return value;
}

const json* JsonFields::Find(absl::string_view field) const {
  const auto it = object_.find(std::string(field));
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

bool JsonFields::Has(absl::string_view field) const {
  return object_.contains(std::string(field));
}

void JsonFields::Fail(absl::string_view field, absl::string_view what) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat(origin_, ": field ", path_,
                   absl::CHexEscape(field.substr(0, 80)), " ", what));
}

void JsonFields::RefuseUnknown(const std::vector<std::string>& known) {
  for (const auto& [name, value] : object_.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    Fail(name, absl::StrCat("is unknown", DidYouMean(name, known)));
  }
}

void JsonFields::RefuseMisspelt(const std::vector<std::string>& known) {
  for (const auto& [name, value] : object_.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string suggestion = DidYouMean(name, known);
    if (!suggestion.empty()) Fail(name, "is unknown" + suggestion);
  }
}

void JsonFields::FailEnum(absl::string_view field, absl::string_view value,
                          absl::string_view known) {
  Fail(field, absl::StrCat("is ", Quoted(value), ", must be one of ", known));
}

std::optional<int64_t> JsonFields::IntValue(const json& value,
                                            absl::string_view field,
                                            int64_t min, int64_t max) {
  if (!value.is_number_integer()) {
    Fail(field, "must be an integer");
    return std::nullopt;
  }
  const bool beyond = value.is_number_unsigned() &&
                      value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (beyond || value.get<int64_t>() < min || value.get<int64_t>() > max) {
    Fail(field, absl::StrCat("is ", value.dump(), ", must be in [", min, ", ",
                             max, "]"));
    return std::nullopt;
  }
  return value.get<int64_t>();
}

int64_t JsonFields::RequiredInt(absl::string_view field, int64_t min,
                                int64_t max) {
  if (Find(field) == nullptr) {
    Fail(field, "is missing");
    return min;
  }
  return Int(field, min, min, max);
}

int64_t JsonFields::Int(absl::string_view field, int64_t fallback, int64_t min,
                        int64_t max) {
  return OptionalInt(field, min, max).value_or(fallback);
}

std::optional<int64_t> JsonFields::OptionalInt(absl::string_view field,
                                               int64_t min, int64_t max) {
  const json* value = Find(field);
  if (value == nullptr) return std::nullopt;
  return IntValue(*value, field, min, max);
}

std::optional<uint64_t> JsonFields::OptionalUint64(absl::string_view field) {
  const json* value = Find(field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_unsigned()) {
    Fail(field, "must be an integer in [0, 2^64)");
    return std::nullopt;
  }
  return value->get<uint64_t>();
}

std::optional<double> JsonFields::OptionalNumber(absl::string_view field) {
  const json* value = Find(field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    Fail(field, "must be a finite number");
    return std::nullopt;
  }
  return value->get<double>();
}

double JsonFields::Number(absl::string_view field, double fallback) {
  return OptionalNumber(field).value_or(fallback);
}

bool JsonFields::Bool(absl::string_view field, bool fallback) {
  const json* value = Find(field);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) {
    Fail(field, "must be true or false");
    return fallback;
  }
  return value->get<bool>();
}

std::optional<std::string> JsonFields::OptionalString(absl::string_view field) {
  const json* value = Find(field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    Fail(field, "must be a string");
    return std::nullopt;
  }
  return value->get<std::string>();
}

std::vector<int64_t> JsonFields::IntList(absl::string_view field, int64_t min,
                                         int64_t max) {
  std::vector<int64_t> list;
  const json* value = Find(field);
  if (value == nullptr) return list;
  if (!value->is_array()) {
    Fail(field, "must be a list of integers");
    return list;
  }
  for (const json& item : *value) {
    const std::optional<int64_t> number = IntValue(item, field, min, max);
    if (!number.has_value()) return {};
    list.push_back(*number);
  }
  return list;
}

std::vector<bool> JsonFields::BoolList(absl::string_view field) {
  std::vector<bool> list;
  const json* value = Find(field);
  if (value == nullptr) return list;
  if (!value->is_array()) {
    Fail(field, "must be a list of true and false");
    return list;
  }
  for (const json& item : *value) {
    if (!item.is_boolean()) {
      Fail(field, "must be a list of true and false");
      return {};
    }
    list.push_back(item.get<bool>());
  }
  return list;
}

std::vector<std::string> JsonFields::StringList(absl::string_view field) {
  std::vector<std::string> list;
  const json* value = Find(field);
  if (value == nullptr) return list;
  if (!value->is_array()) {
    Fail(field, "must be a list of strings");
    return list;
  }
  for (const json& item : *value) {
    if (!item.is_string()) {
      Fail(field, "must be a list of strings");
      return {};
    }
    list.push_back(item.get<std::string>());
    if (list.back().empty()) Fail(field, "has an empty text");
  }
  return list;
}

std::optional<JsonFields> JsonFields::Object(absl::string_view field) {
  const json* value = Find(field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) {
    Fail(field, "must be an object");
    return std::nullopt;
  }
  return JsonFields(*value, origin_, absl::StrCat(path_, field, "."));
}

}  // namespace txl
