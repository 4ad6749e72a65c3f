#pragma once

// What a body's JSON or a query says, strictly: a field has the type that the
// documents give it, null is as good as absent, and a field that was not asked
// for can be refused.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/http/http_message.h"

namespace txl {

// Parses an object. Errors: MALFORMED_MESSAGE (no JSON, not UTF-8, no object, a
// number that no double holds, deeper than kMaxJsonDepth, an object of more
// than kMaxJsonMembers); FIELD_INVALID naming a key that stands twice.
absl::StatusOr<nlohmann::json> ParseBody(absl::string_view body);

// A target's query as an object of texts. Errors: FIELD_INVALID naming a
// parameter that stands twice.
absl::StatusOr<nlohmann::json> QueryObject(const HttpRequest& http);

// Reads the fields of an object. Errors: FIELD_INVALID naming the field. Every
// reader gives an absent value for an absent field and for null.
class BodyFields {
 public:
  // kText: numbers and booleans are texts, as in a query: "-5"; "true", "0".
  enum class Spelling { kJson, kText };

  // The object outlives the reader.
  explicit BodyFields(const nlohmann::json& object,
                      Spelling spelling = Spelling::kJson)
      : object_(object), spelling_(spelling) {}

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
  // Once all fields have been asked for. FIELD_INVALID: there is another one;
  // the message names the nearest, or all.
  absl::Status RefuseUnknown() const;
  // Refuses an unknown member only if it is probably a misspelt field: one or
  // two letters away, or equal except for case and underscores.
  absl::Status RefuseMisspelt() const;

 private:
  std::vector<std::string> Known() const;

  const nlohmann::json& object_;
  const Spelling spelling_;
  std::set<std::string> known_;
};

// A list of token ids of a field of that name. Ids may be written as 20.0.
absl::StatusOr<std::vector<uint32_t>> ReadIdList(const nlohmann::json& list,
                                                 const std::string& name);

}  // namespace txl
