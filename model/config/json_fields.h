#pragma once

// Reading fields of a JSON object with errors that name file and field.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// Parses `text` as a JSON object nested at most `max_depth` deep; keys that
// occur twice are errors.
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text,
                                               absl::string_view origin,
                                               int max_depth = 16);

// Numbers without a fraction as integers, also those of a list: 16.0 is 16.
// What int64 does not hold stays as it is. For foreign files; JsonFields takes
// no float for an integer.
nlohmann::json WithWholeNumbers(nlohmann::json value);

// The fields of one object. After the first bad field every reader returns its
// default and status() says what was wrong, so that a caller reads all fields
// and checks once. `object` and `origin` outlive the reader.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, absl::string_view origin)
      : JsonFields(object, origin, "") {}

  // Null counts as absent for every reader but Has.
  bool Has(absl::string_view field) const;

  int64_t RequiredInt(absl::string_view field, int64_t min, int64_t max);
  int64_t Int(absl::string_view field, int64_t fallback, int64_t min,
              int64_t max);
  std::optional<int64_t> OptionalInt(absl::string_view field, int64_t min,
                                     int64_t max);
  std::optional<uint64_t> OptionalUint64(absl::string_view field);
  std::optional<double> OptionalNumber(absl::string_view field);
  double Number(absl::string_view field, double fallback);
  bool Bool(absl::string_view field, bool fallback);
  std::optional<std::string> OptionalString(absl::string_view field);
  std::vector<int64_t> IntList(absl::string_view field, int64_t min,
                               int64_t max);
  std::vector<bool> BoolList(absl::string_view field);
  // None of them empty.
  std::vector<std::string> StringList(absl::string_view field);
  // The fields of an object in this one, named "field.NAME" in errors.
  std::optional<JsonFields> Object(absl::string_view field);

  // One of named values: {"relu", Activation::kRelu}, ...
  template <typename T>
  T Enum(absl::string_view field, T fallback,
         const std::vector<std::pair<std::string, T>>& values);

  // Records an error of a key that is not in `known`, with the nearest one.
  void RefuseUnknown(const std::vector<std::string>& known);
  // Does so only where there is a nearest one, so that the key looks misspelt:
  // other keys are notes of the author.
  void RefuseMisspelt(const std::vector<std::string>& known);
  // Records an error of `field`.
  void Fail(absl::string_view field, absl::string_view what);
  // Takes over the error of an object in this one.
  void FailAs(const JsonFields& inner) { status_.Update(inner.status_); }
  const absl::Status& status() const { return status_; }

 private:
  JsonFields(const nlohmann::json& object, absl::string_view origin,
             std::string path)
      : object_(object), origin_(origin), path_(std::move(path)) {}
  void FailEnum(absl::string_view field, absl::string_view value,
                absl::string_view known);
  const nlohmann::json* Find(absl::string_view field) const;
  std::optional<int64_t> IntValue(const nlohmann::json& value,
                                  absl::string_view field, int64_t min,
                                  int64_t max);

  const nlohmann::json& object_;
  absl::string_view origin_;
  std::string path_;  // of the object, "chat." or ""
  absl::Status status_;
};

template <typename T>
T JsonFields::Enum(absl::string_view field, T fallback,
                   const std::vector<std::pair<std::string, T>>& values) {
  const std::optional<std::string> name = OptionalString(field);
  if (!name.has_value()) return fallback;
  std::string known;
  for (const auto& [value_name, value] : values) {
    if (value_name == *name) return value;
    known += (known.empty() ? "" : ", ") + value_name;
  }
  FailEnum(field, *name, known);
  return fallback;
}

}  // namespace txl
