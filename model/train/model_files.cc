#include "model/train/model_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/config/generation_defaults.h"
#include "model/train/run_folder.h"

namespace txl {
namespace {

// Small models read better a little below temperature 1.
constexpr double kDefaultTemperature = 0.8;

std::optional<int32_t> LineBreakId(const Corpus& corpus) {
  if (corpus.kind == CorpusVocabulary::kBytes) return '\n';
  const auto it = std::find(corpus.symbols.begin(), corpus.symbols.end(), "\n");
  if (it == corpus.symbols.end()) return std::nullopt;
  return static_cast<int32_t>(it - corpus.symbols.begin());
}

std::string TokenizerJson(const Corpus& corpus) {
  nlohmann::ordered_json json;
  if (corpus.kind == CorpusVocabulary::kBytes) {
    json["kind"] = "bytes";
  } else {
    json["kind"] = "characters";
    json["file"] = "vocab.json";
  }
  return json.dump(1) + "\n";
}

GenerationDefaults Defaults(const Corpus& corpus) {
  GenerationDefaults defaults;
  if (const std::optional<int32_t> id = LineBreakId(corpus)) {
    defaults.start_tokens = {*id};
  }
  defaults.sampling.temperature = kDefaultTemperature;
  return defaults;
}

}  // namespace

absl::Status WriteTextFile(const std::string& path, absl::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, ": cannot be written"));
  }
  return absl::OkStatus();
}

absl::Status CopyModelFiles(const std::string& from, const std::string& to) {
  TXL_RETURN_IF_ERROR(MakeFolder(to));
  for (const std::string& name : DescribingFiles(from)) {
    std::error_code error;
    const std::string file = absl::StrCat(from, "/", name);
    if (!std::filesystem::exists(file, error)) continue;
    std::filesystem::copy_file(
        file, absl::StrCat(to, "/", name),
        std::filesystem::copy_options::overwrite_existing, error);
    if (error) {
      return absl::PermissionDeniedError(
          absl::StrCat(to, "/", name, ": ", error.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteModelFiles(const std::string& directory,
                             const ModelConfig& config, const Corpus& corpus) {
  TXL_RETURN_IF_ERROR(MakeFolder(directory));
  TXL_RETURN_IF_ERROR(
      WriteTextFile(directory + "/config.json", ModelConfigToJson(config)));
  TXL_RETURN_IF_ERROR(
      WriteTextFile(directory + "/tokenizer.json", TokenizerJson(corpus)));
  if (corpus.kind == CorpusVocabulary::kCharacters) {
    TXL_RETURN_IF_ERROR(
        WriteTextFile(directory + "/vocab.json",
                      nlohmann::json(corpus.symbols).dump(1) + "\n"));
  }
  return WriteTextFile(directory + "/generation.json",
                       GenerationDefaultsToJson(Defaults(corpus)));
}

}  // namespace txl
