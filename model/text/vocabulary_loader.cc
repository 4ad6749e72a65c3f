#include "model/text/vocabulary_loader.h"

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/text/byte_vocabulary.h"
#include "model/text/symbol_file.h"
#include "model/text/symbol_vocabulary.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

using Json = nlohmann::json;

constexpr absl::string_view kTokenizerFile = "tokenizer.json";

absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return absl::NotFoundError(absl::StrCat(path.string(), ": no such file"));
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  // A directory opens but does not read; an empty file sets only failbit of
  // `content`.
  if (!in ||
      (in.peek() != std::ifstream::traits_type::eof() &&
       !(content << in.rdbuf())) ||
      in.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), ": cannot be read"));
  }
  return std::move(content).str();
}

absl::Status FieldError(absl::string_view field, absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat(kTokenizerFile, ": ", field, ": ", problem));
}

absl::Status CheckFieldNames(const Json& json,
                             std::initializer_list<absl::string_view> known) {
  for (const auto& [name, value] : json.items()) {
    bool is_known = false;
    for (const absl::string_view candidate : known) {
      is_known = is_known || candidate == name;
    }
    if (!is_known) {
      return FieldError(name, absl::StrCat("is no field of kind ",
                                           json["kind"].get<std::string>()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ReadSymbols(
    const Json& json, const std::filesystem::path& directory,
    int64_t vocab_size) {
  const auto field = json.find("file");
  if (field == json.end() || !field->is_string()) {
    return FieldError("file", "must be the name of the vocabulary file");
  }
  const std::string name = field->get<std::string>();
  // Everything that a model needs lies in its directory.
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
    return FieldError("file", "must be a file name without a folder");
  }
  absl::StatusOr<std::string> content = ReadFile(directory / name);
  if (!content.ok()) {
    return FieldError("file", content.status().message());
  }
  TXL_ASSIGN_OR_RETURN(std::vector<std::string> symbols,
                       ParseSymbolFile(*content, name));
  if (static_cast<int64_t>(symbols.size()) != vocab_size) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": has ", symbols.size(),
                     " symbols, the model's vocab_size is ", vocab_size));
  }
  return symbols;
}

absl::StatusOr<SymbolSplit> ParseDelimiter(const Json& json) {
  const auto field = json.find("delimiter");
  if (field == json.end() || field->is_null()) return SymbolSplit::kWhitespace;
  if (*field == "") return SymbolSplit::kCharacters;
  if (*field == " ") return SymbolSplit::kSpace;
  return FieldError("delimiter", "must be null, \"\" or \" \"");
}

// The id of the symbol that the optional field names.
absl::StatusOr<std::optional<int32_t>> ParseSymbolField(
    const Json& json, const char* name,
    const std::vector<std::string>& symbols) {
  const auto field = json.find(name);
  if (field == json.end() || field->is_null()) {
    return std::optional<int32_t>();
  }
  if (!field->is_string()) {
    return FieldError(name, "must be a symbol or null");
  }
  const std::string symbol = field->get<std::string>();
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i] == symbol) {
      return std::optional<int32_t>(static_cast<int32_t>(i));
    }
  }
  return FieldError(name, "the symbol is not in the vocabulary file");
}

absl::StatusOr<std::unique_ptr<Vocabulary>> LoadBytes(const Json& json,
                                                      int64_t vocab_size) {
  TXL_RETURN_IF_ERROR(CheckFieldNames(json, {"kind"}));
  if (vocab_size != ByteVocabulary::kSize) {
    return FieldError(
        "kind", absl::StrCat("bytes has ", ByteVocabulary::kSize,
                             " ids, the model's vocab_size is ", vocab_size));
  }
  return std::make_unique<ByteVocabulary>();
}

absl::StatusOr<std::unique_ptr<Vocabulary>> LoadCharacters(
    const Json& json, const std::filesystem::path& directory,
    int64_t vocab_size) {
  TXL_RETURN_IF_ERROR(CheckFieldNames(json, {"kind", "file"}));
  TXL_ASSIGN_OR_RETURN(std::vector<std::string> symbols,
                       ReadSymbols(json, directory, vocab_size));
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (FirstCharacter(symbols[i]).length != symbols[i].size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(json["file"].get<std::string>(), ": symbol ", i + 1,
                       ": must be a single character"));
    }
  }
  SymbolRules rules;
  rules.split = SymbolSplit::kCharacters;
  return std::make_unique<SymbolVocabulary>("characters", std::move(symbols),
                                            rules);
}

absl::StatusOr<std::unique_ptr<Vocabulary>> LoadSymbols(
    const Json& json, const std::filesystem::path& directory,
    int64_t vocab_size) {
  TXL_RETURN_IF_ERROR(CheckFieldNames(
      json,
      {"kind", "file", "delimiter", "lower_case", "unknown", "line_token"}));
  SymbolRules rules;
  TXL_ASSIGN_OR_RETURN(rules.split, ParseDelimiter(json));
  if (const auto field = json.find("lower_case"); field != json.end()) {
    if (!field->is_boolean()) {
      return FieldError("lower_case", "must be true or false");
    }
    rules.lower_case = field->get<bool>();
  }
  TXL_ASSIGN_OR_RETURN(std::vector<std::string> symbols,
                       ReadSymbols(json, directory, vocab_size));
  TXL_ASSIGN_OR_RETURN(rules.unknown_id,
                       ParseSymbolField(json, "unknown", symbols));
  TXL_ASSIGN_OR_RETURN(rules.line_id,
                       ParseSymbolField(json, "line_token", symbols));
  return std::make_unique<SymbolVocabulary>("symbols", std::move(symbols),
                                            rules);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Vocabulary>> LoadVocabulary(
    const std::string& model_directory, int64_t vocab_size) {
  const std::filesystem::path directory(model_directory);
  TXL_ASSIGN_OR_RETURN(const std::string text,
                       ReadFile(directory / std::string(kTokenizerFile)));
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kTokenizerFile, ": is not a JSON object"));
  }
  const auto kind = json.find("kind");
  if (kind != json.end() && *kind == "bytes") {
    return LoadBytes(json, vocab_size);
  }
  if (kind != json.end() && *kind == "characters") {
    return LoadCharacters(json, directory, vocab_size);
  }
  if (kind != json.end() && *kind == "symbols") {
    return LoadSymbols(json, directory, vocab_size);
  }
  return FieldError("kind", "must be bytes, characters or symbols");
}

}  // namespace txl
