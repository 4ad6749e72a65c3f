#pragma once

// What a body's JSON says, strictly: a field has the type that the documents
// give it, null is as good as absent, and what nobody has read can be named.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// Parses an object. Errors: MALFORMED_MESSAGE (no JSON, not UTF-8, no object, a
// number that no double holds, deeper than kMaxJsonDepth, an object of more
// than kMaxJsonMembers); FIELD_INVALID naming a key that stands twice.
absl::StatusOr<nlohmann::json> ParseBody(absl::string_view body);

// Reads the fields of an object. Errors: FIELD_INVALID naming the field. Every
// reader gives an absent value for an absent field and for null.
class BodyFields {
 public:
  // The object outlives the reader.
  explicit BodyFields(const nlohmann::json& object) : object_(object) {}

  // Null: absent.
  const nlohmann::json* Find(const std::string& name);
  absl::StatusOr<std::optional<double>> Number(const std::string& name);
  // A whole number, also one that is written as 1.0.
  absl::StatusOr<std::optional<int64_t>> Integer(const std::string& name);
  absl::StatusOr<std::optional<bool>> Bool(const std::string& name);
  absl::StatusOr<std::optional<std::string>> String(const std::string& name);
  // Token ids.
  absl::StatusOr<std::optional<std::vector<uint32_t>>> Ids(
      const std::string& name);
  // Strings; one alone is a list of one. OVER_LIMIT: more than kMaxJsonMembers.
  absl::StatusOr<std::vector<std::string>> Strings(const std::string& name);

  // Fields that were not asked for, null ones left out.
  std::vector<std::string> Unknown() const;

 private:
  const nlohmann::json& object_;
  std::set<std::string> known_;
};

// A list of token ids of a field of that name.
absl::StatusOr<std::vector<uint32_t>> ReadIdList(const nlohmann::json& list,
                                                 const std::string& name);

}  // namespace txl
