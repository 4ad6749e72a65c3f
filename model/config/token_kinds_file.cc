#include "model/config/token_kinds_file.h"

#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/config/json_fields.h"

namespace txl {
namespace {

using nlohmann::json;

bool IsId(const json& value) {
  constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
  return value.is_number_unsigned() && value.get<uint64_t>() <= kMost;
}

std::vector<TokenKind::Range> ReadTokens(JsonFields& in, const json& object) {
  std::vector<TokenKind::Range> ranges;
  const auto tokens = object.find("tokens");
  const bool is_list = tokens != object.end() && tokens->is_array();
  if (!is_list) in.Fail("tokens", "must be a list of ids and [first, last]");
  for (size_t i = 0; is_list && i < tokens->size(); ++i) {
    const json& token = (*tokens)[i];
    if (IsId(token)) {
      ranges.emplace_back(token.get<int32_t>(), token.get<int32_t>());
    } else if (token.is_array() && token.size() == 2 && IsId(token[0]) &&
               IsId(token[1])) {
      ranges.emplace_back(token[0].get<int32_t>(), token[1].get<int32_t>());
    } else {
      in.Fail("tokens", "must be a list of ids and [first, last]");
      return ranges;
    }
  }
  return ranges;
}

TokenKind ReadKind(const std::string& name, const json& object,
                   JsonFields& in) {
  in.RefuseUnknown({"tokens", "next", "next_temperature"});
  TokenKind kind = {.name = name, .tokens = ReadTokens(in, object)};
  if (in.Has("next")) kind.next = in.StringList("next");
  kind.next_temperature = in.Number("next_temperature", 1);
  return kind;
}

}  // namespace

absl::StatusOr<TokenKinds> ParseTokenKinds(absl::string_view text,
                                           absl::string_view origin,
                                           int64_t vocab_size) {
  TXL_ASSIGN_OR_RETURN(const json object, ParseJsonObject(text, origin));
  JsonFields in(object, origin);
  in.RefuseUnknown({"kinds"});
  std::vector<TokenKind> kinds;
  std::optional<JsonFields> all = in.Object("kinds");
  if (!all.has_value()) {
    in.Fail("kinds", "must be an object of kinds");
    return in.status();
  }
  for (const auto& [name, value] : object["kinds"].items()) {
    std::optional<JsonFields> kind = all->Object(name);
    if (!kind.has_value()) {
      all->Fail(name, "must be an object");
      break;
    }
    kinds.push_back(ReadKind(name, value, *kind));
    all->FailAs(*kind);
  }
  in.FailAs(*all);
  TXL_RETURN_IF_ERROR(in.status());
  absl::StatusOr<TokenKinds> made =
      TokenKinds::Make(std::move(kinds), vocab_size);
  if (made.ok()) return made;
  return absl::InvalidArgumentError(
      absl::StrCat(origin, ": field ", made.status().message()));
}

std::string TokenKindsToJson(const std::vector<TokenKind>& kinds) {
  std::string text = "{\"kinds\": {";
  const char* separator = "\n";
  for (const TokenKind& kind : kinds) {
    nlohmann::ordered_json entry;
    entry["tokens"] = json::array();
    for (const auto& [first, last] : kind.tokens) {
      if (first == last) {
        entry["tokens"].push_back(first);
      } else {
        entry["tokens"].push_back({first, last});
      }
    }
    if (kind.next.has_value()) entry["next"] = *kind.next;
    if (kind.next_temperature != 1) {
      entry["next_temperature"] = kind.next_temperature;
    }
    absl::StrAppend(&text, separator, "  ", json(kind.name).dump(), ": ",
                    entry.dump());
    separator = ",\n";
  }
  return absl::StrCat(text, "\n}}\n");
}

}  // namespace txl
