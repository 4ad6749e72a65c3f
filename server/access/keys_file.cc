#include "server/access/keys_file.h"

#include <sys/random.h>
#include <toml++/toml.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "model/base/status_macros.h"
#include "program/nearest_name.h"
#include "server/base/digest.h"
#include "server/base/plain_name.h"
#include "server/base/text_file.h"

namespace txl {
namespace {

constexpr size_t kKeyBytes = 32;
constexpr const char* kFields[] = {"name", "tenant", "role", "sha256",
                                   "expires"};

absl::Status Wrong(const toml::table& table, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", table.source().begin.line, ": ", what));
}

absl::StatusOr<std::string> Text(const toml::table& table, const char* field) {
  const auto value = table[field].value<std::string>();
  if (!value.has_value()) {
    return Wrong(table, absl::StrCat("`", field, "` must be a text"));
  }
  return *value;
}

absl::StatusOr<std::string> ReadDigest(const toml::table& table) {
  TXL_ASSIGN_OR_RETURN(const std::string hex, Text(table, "sha256"));
  const bool digits = hex.size() == 2 * kDigestBytes &&
                      std::all_of(hex.begin(), hex.end(), absl::ascii_isxdigit);
  if (!digits) return Wrong(table, "`sha256` must be 64 hexadecimal digits");
  return absl::HexStringToBytes(hex);
}

// A text or TOML's own time, of a time zone both. absl::ParseTime also takes
// words and spaces.
std::optional<absl::Time> ReadTime(toml::node_view<const toml::node> node) {
  std::string text = node.value_or("");
  if (const auto* const own = node.as_date_time()) {
    std::ostringstream written;
    written << own->get();
    text = written.str();
  }
  absl::Time time;
  std::string error;
  if (text.empty() || !absl::ascii_isdigit(text.front()) ||
      absl::ascii_isspace(text.back()) ||
      !absl::ParseTime(absl::RFC3339_sec, text, &time, &error)) {
    return std::nullopt;
  }
  return time;
}

absl::StatusOr<KeyEntry> ReadEntry(const toml::table& table) {
  for (const auto& [field, value] : table) {
    if (std::find(std::begin(kFields), std::end(kFields), field.str()) ==
        std::end(kFields)) {
      const std::string name(field.str());
      return Wrong(table, absl::StrCat("`", name, "` is not a field of a key",
                                       DidYouMean(name, {std::begin(kFields),
                                                         std::end(kFields)})));
    }
  }
  KeyEntry entry;
  TXL_ASSIGN_OR_RETURN(entry.caller.name, Text(table, "name"));
  TXL_ASSIGN_OR_RETURN(entry.caller.tenant, Text(table, "tenant"));
  TXL_ASSIGN_OR_RETURN(const std::string role, Text(table, "role"));
  TXL_ASSIGN_OR_RETURN(entry.digest, ReadDigest(table));
  for (const auto& [what, name] : {std::pair{"name", &entry.caller.name},
                                   std::pair{"tenant", &entry.caller.tenant}}) {
    const absl::Status valid = CheckAccessName(what, *name);
    if (!valid.ok()) return Wrong(table, valid.message());
  }
  const std::optional<Role> known = ParseRole(role);
  if (!known.has_value()) {
    return Wrong(table, "`role` must be user, scorer, metrics or admin");
  }
  entry.caller.role = *known;
  if (table.contains("expires")) {
    const std::optional<absl::Time> expires = ReadTime(table["expires"]);
    if (!expires.has_value()) {
      return Wrong(table, "`expires` must be a time like 2027-01-01T00:00:00Z");
    }
    entry.expires = *expires;
  }
  return entry;
}

absl::StatusOr<std::vector<KeyEntry>> ReadTable(const toml::table& root) {
  std::vector<KeyEntry> keys;
  for (const auto& [name, value] : root) {
    if (name.str() != "key" || !value.is_array_of_tables()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", value.source().begin.line, ": the file has [[key]] alone"));
    }
  }
  const toml::array* const entries = root["key"].as_array();
  if (entries == nullptr) return keys;
  std::set<std::string> names, digests;
  for (const toml::node& node : *entries) {
    TXL_ASSIGN_OR_RETURN(KeyEntry entry, ReadEntry(*node.as_table()));
    if (!names.insert(entry.caller.name).second ||
        !digests.insert(entry.digest).second) {
      return Wrong(
          *node.as_table(),
          absl::StrCat("the key \"", entry.caller.name, "\" is there twice"));
    }
    keys.push_back(std::move(entry));
  }
  return keys;
}

// `old` without the tables of other keys than these, and with those of new ones
// at its end; all other lines, as comments, stay.
std::string Edited(const std::string& old, const std::vector<KeyEntry>& keys) {
  const toml::table root = toml::parse(old);
  std::vector<std::string> lines = absl::StrSplit(old, '\n');
  std::set<std::string> kept;
  for (const KeyEntry& key : keys) kept.insert(key.caller.name);
  std::set<std::string> there;
  const toml::array* const entries = root["key"].as_array();
  for (size_t i = entries == nullptr ? 0 : entries->size(); i-- > 0;) {
    const toml::table& table = *entries->get(i)->as_table();
    if (table.is_inline()) return FormatKeys(keys);  // several to a line
    const std::string name = table["name"].value_or("");
    if (kept.count(name) > 0) {
      there.insert(name);
      continue;
    }
    auto first = lines.begin() + (table.source().begin.line - 1);
    uint32_t last = 0;
    for (const auto& [field, value] : table) {
      last = std::max(last, value.source().end.line);
    }
    const auto end = lines.begin() + last;
    if (first != lines.begin() && std::prev(first)->empty()) --first;
    lines.erase(first, end);
  }
  std::string text = absl::StrJoin(lines, "\n");
  for (const KeyEntry& key : keys) {
    if (there.count(key.caller.name) > 0) continue;
    absl::StrAppend(&text,
                    absl::EndsWith(text, "\n") || text.empty() ? "" : "\n",
                    text.empty() ? "" : "\n", FormatKeys({key}));
  }
  return text;
}

absl::Status WithPath(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

}  // namespace

absl::Status CheckAccessName(absl::string_view what, absl::string_view name) {
  if (IsPlainName(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "`", what, "` must be 1 to 64 characters of A-Z a-z 0-9 _ -"));
}

absl::StatusOr<std::vector<KeyEntry>> ParseKeys(absl::string_view toml) {
  try {
    return ReadTable(toml::parse(std::string_view(toml.data(), toml.size())));
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", error.source().begin.line, ": ",
                     std::string(error.description())));
  }
}

std::string FormatKeys(const std::vector<KeyEntry>& keys) {
  toml::array entries;
  for (const KeyEntry& key : keys) {
    toml::table table{{"name", key.caller.name},
                      {"tenant", key.caller.tenant},
                      {"role", RoleName(key.caller.role)},
                      {"sha256", absl::BytesToHexString(key.digest)}};
    if (key.expires != absl::InfiniteFuture()) {
      table.insert("expires", absl::FormatTime(absl::RFC3339_sec, key.expires,
                                               absl::UTCTimeZone()));
    }
    entries.push_back(std::move(table));
  }
  toml::table root;
  if (!entries.empty()) root.insert("key", std::move(entries));
  std::ostringstream text;
  text << root << "\n";
  return text.str();
}

absl::StatusOr<std::vector<KeyEntry>> ReadKeysFile(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(
      const std::string toml,
      ReadSecretFile(path, {0, kMostKeysFileBytes, "a keys file"}));
  absl::StatusOr<std::vector<KeyEntry>> keys = ParseKeys(toml);
  if (!keys.ok()) return WithPath(path, keys.status());
  return keys;
}

absl::Status WriteKeysFile(const std::string& path,
                           const std::vector<KeyEntry>& keys) {
  std::string text = FormatKeys(keys);
  const std::string old = ReadTextFile(path);
  if (ParseKeys(old).ok()) {
    std::string edited = Edited(old, keys);
    const absl::StatusOr<std::vector<KeyEntry>> read = ParseKeys(edited);
    if (read.ok() && FormatKeys(*read) == text) text = std::move(edited);
  }
  return WriteSecretFile(path, text);
}

absl::StatusOr<std::string> NewKey() {
  std::string bytes(kKeyBytes, '\0');
  // So few bytes come whole.
  if (getrandom(bytes.data(), bytes.size(), 0) !=
      static_cast<ssize_t>(bytes.size())) {
    return absl::InternalError("the system gives no random bytes");
  }
  std::string key = absl::WebSafeBase64Escape(bytes);
  key.erase(key.find_last_not_of('=') + 1);
  return key;
}

}  // namespace txl
