#include "model/convert/vocabulary/native_vocabulary.h"

#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

using json = nlohmann::json;

constexpr const char* kLists[] = {"idx2sym", "itos"};

const json* Member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

// The symbol list of a Vocab object, or null.
const json* SymbolList(const json& object) {
  for (const char* name : kLists) {
    const json* list = Member(object, name);
    if (list != nullptr && list->is_array()) return list;
  }
  return nullptr;
}

bool IsDictionary(const json& object) {
  if (!object.is_object() || object.empty()) return false;
  for (const auto& [name, id] : object.items()) {
    if (!id.is_number_integer()) return false;
  }
  return true;
}

bool IsEventPair(const json& data) {
  return data.is_array() && data.size() == 2 && IsDictionary(data[0]) &&
         data[1].is_object();
}

bool IsNameList(const json& data) {
  return data.is_array() && !data.empty() && data[0].is_string();
}

absl::StatusOr<std::vector<std::string>> FromList(const json& list,
                                                  absl::string_view place) {
  std::vector<std::string> symbols;
  symbols.reserve(list.size());
  for (const json& symbol : list) {
    if (!symbol.is_string()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": entry ", symbols.size(), " is not text"));
    }
    symbols.push_back(symbol.get<std::string>());
  }
  return symbols;
}

absl::StatusOr<std::vector<std::string>> FromDictionary(
    const json& dictionary, absl::string_view place) {
  std::vector<std::string> symbols(dictionary.size());
  std::vector<bool> seen(dictionary.size(), false);
  for (const auto& [name, value] : dictionary.items()) {
    const auto id = value.get<uint64_t>();  // a negative one is too large
    if (id >= symbols.size() || seen[id]) {
      return absl::InvalidArgumentError(absl::StrCat(
          place, ": the ids are not 0 to ", symbols.size() - 1, ": found ",
          value.dump(), id < symbols.size() ? " twice" : ""));
    }
    seen[id] = true;
    symbols[id] = name;
  }
  return symbols;
}

absl::Status AttributeError(const char* name, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("field ", name, " must be ", wanted, " or null"));
}

absl::Status ReadAttributes(const json& object, NativeVocabulary& vocabulary) {
  const auto read = [&object](const char* name) {
    const json* value = Member(object, name);
    return value == nullptr ? json() : *value;
  };
  const json lower_case = read("lower_case");
  const json delimiter = read("delimiter");
  const json unknown = read("unk_idx");
  if (lower_case.is_boolean()) {
    vocabulary.lower_case = lower_case.get<bool>();
  } else if (lower_case == 0 || lower_case == 1) {  // as Python takes them
    vocabulary.lower_case = lower_case == 1;
  } else if (!lower_case.is_null()) {
    return AttributeError("lower_case", "true, false");
  }
  if (delimiter.is_string()) {
    vocabulary.delimiter = delimiter.get<std::string>();
  } else if (!delimiter.is_null()) {
    return AttributeError("delimiter", "a text");
  }
  if (unknown.is_number_integer()) {
    vocabulary.unknown_id = unknown.get<int64_t>();
  } else if (!unknown.is_null()) {
    return AttributeError("unk_idx", "an integer");
  }
  return absl::OkStatus();
}

// The bytes of a text whose characters are all below U+0100, when they are
// UTF-8 themselves and not all ASCII.
std::optional<std::string> AsUtf8(absl::string_view symbol, bool* could_be) {
  std::string bytes;
  bool ascii = true;
  *could_be = false;
  while (!symbol.empty()) {
    const Utf8Character next = FirstCharacter(symbol);
    if (next.code_point > 0xFF) return std::nullopt;
    ascii = ascii && next.code_point < 0x80;
    bytes.push_back(static_cast<char>(next.code_point));
    symbol.remove_prefix(next.length);
  }
  if (ascii) return std::nullopt;
  *could_be = true;
  if (!IsValidUtf8(bytes)) return std::nullopt;
  return bytes;
}

void RepairLatin1(RepairedSymbols& repaired) {
  std::vector<std::pair<size_t, std::string>> fixes;
  int64_t kept = 0;
  for (size_t i = 0; i < repaired.symbols.size(); ++i) {
    bool could_be = false;
    std::optional<std::string> fixed = AsUtf8(repaired.symbols[i], &could_be);
    if (fixed) {
      fixes.emplace_back(i, *std::move(fixed));
    } else if (could_be) {
      ++kept;
    }
  }
  if (static_cast<int64_t>(fixes.size()) <= kept) return;
  const absl::flat_hash_set<std::string> stored(repaired.symbols.begin(),
                                                repaired.symbols.end());
  for (auto& [index, fixed] : fixes) {
    if (stored.contains(fixed)) continue;
    repaired.symbols[index] = std::move(fixed);
    ++repaired.from_latin1;
  }
}

}  // namespace

bool HoldsVocabObject(const json& data) {
  const json* inner = Member(data, "vocab");
  return inner != nullptr && SymbolList(*inner) != nullptr;
}

absl::StatusOr<NativeVocabulary> VocabularyFromData(const json& data) {
  if (HoldsVocabObject(data)) return VocabularyFromData(data["vocab"]);
  NativeVocabulary vocabulary;
  if (const json* list = SymbolList(data); list != nullptr) {
    TXL_ASSIGN_OR_RETURN(vocabulary.symbols, FromList(*list, "idx2sym"));
    TXL_RETURN_IF_ERROR(ReadAttributes(data, vocabulary));
    return vocabulary;
  }
  if (IsEventPair(data)) {
    vocabulary.events = true;
    TXL_ASSIGN_OR_RETURN(vocabulary.symbols,
                         FromDictionary(data[0], "the dictionary of names"));
    return vocabulary;
  }
  if (IsDictionary(data)) {
    TXL_ASSIGN_OR_RETURN(vocabulary.symbols,
                         FromDictionary(data, "the dictionary of symbols"));
    return vocabulary;
  }
  if (IsNameList(data)) {
    TXL_ASSIGN_OR_RETURN(vocabulary.symbols, FromList(data, "the list"));
    return vocabulary;
  }
  return absl::InvalidArgumentError(
      "holds no vocabulary: neither idx2sym nor a dictionary of ids nor a list "
      "of symbols");
}

absl::StatusOr<NativeVocabulary> VocabularyFromLines(
    absl::string_view content) {
  NativeVocabulary vocabulary;
  absl::flat_hash_set<std::string> seen;
  for (int64_t number = 1; !content.empty(); ++number) {
    const size_t end = content.find('\n');
    absl::string_view line = content.substr(0, end);
    content.remove_prefix(end == absl::string_view::npos ? content.size()
                                                         : end + 1);
    // A carriage return alone may be meant; at the end of a word it never is.
    if (line.size() > 1 && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": has no symbol"));
    }
    absl::string_view field = absl::StripLeadingAsciiWhitespace(line);
    field = field.substr(0, field.find_first_of(" \t\r\v\f"));
    std::string symbol(field.empty() ? line : field);
    if (seen.insert(symbol).second) {
      vocabulary.symbols.push_back(std::move(symbol));
    }
  }
  return vocabulary;
}

absl::StatusOr<RepairedSymbols> RepairSymbols(
    const std::vector<std::string>& symbols) {
  RepairedSymbols repaired;
  repaired.symbols.reserve(symbols.size());
  for (const std::string& symbol : symbols) {
    const bool valid = IsValidUtf8(symbol);
    repaired.escaped += !valid;
    repaired.symbols.push_back(valid ? symbol : absl::CHexEscape(symbol));
  }
  RepairLatin1(repaired);
  absl::flat_hash_set<absl::string_view> seen;
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (repaired.symbols[i].empty() ||
        !seen.insert(repaired.symbols[i]).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "symbol ", i,
          repaired.symbols[i].empty() ? ": is empty" : ": was there before"));
    }
  }
  return repaired;
}

}  // namespace txl
