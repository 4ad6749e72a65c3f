#pragma once

// config.json in the making: fields with their origins.

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/config/model_config.h"
#include "model/convert/family/family.h"

namespace txl {

class ConfigDraft {
 public:
  // `spec`: null or an object. Keys that are no fields of config.json are
  // ignored; null counts as absent, but for window and clamp_len, where it
  // means none.
  explicit ConfigDraft(const nlohmann::json& spec);

  // A size or choice that the weights show. A spec that says otherwise is an
  // error, and so is a configuration of the checkpoint that was set before.
  void FromWeights(absl::string_view field, nlohmann::json value);
  // What the checkpoint's own configuration says; a spec goes before it. Does
  // nothing when `value` is discarded or the field was set from the weights.
  void FromCheckpoint(absl::string_view field, nlohmann::json value);
  // What the family does where nobody says. Does nothing when set before.
  void FamilyDefault(absl::string_view field, nlohmann::json value);

  // The value that holds now: of the spec, or set before; null when none.
  nlohmann::json Get(absl::string_view field) const;
  int64_t Int(absl::string_view field, int64_t fallback) const;
  bool Bool(absl::string_view field, bool fallback) const;

  // Parses all fields as a config.json into plan.config and plan.fields; a
  // field that nobody set has config.json's default as its family's. Errors:
  // InvalidArgument naming the field, with `origin` (the checkpoint's path)
  // before it.
  absl::Status Finish(absl::string_view origin, ConversionPlan& plan) const;

 private:
  void Set(absl::string_view field, nlohmann::json value, FieldOrigin origin);

  std::map<std::string, PlannedField, std::less<>> fields_;
  absl::Status status_;
};

}  // namespace txl
