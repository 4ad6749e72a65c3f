#include "model/checkpoint/model_directory.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "model/config/json_fields.h"
#include "model/config/token_kinds_file.h"
#include "model/text/vocabulary_loader.h"

namespace txl {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxJsonBytes = 1 << 20;

constexpr absl::string_view kConvertHint =
    "txl-model convert makes a model directory of a checkpoint";

absl::StatusOr<std::string> Sha256OfFiles(
    const std::vector<std::string>& paths) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(
      EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr);
  std::vector<char> block(1 << 20);
  for (const std::string& path : paths) {
    TXL_ASSIGN_OR_RETURN(const RegularFile file, RegularFile::Open(path));
    ssize_t got = 0;
    while ((got = ::read(file.fd(), block.data(), block.size())) > 0) {
      EVP_DigestUpdate(context.get(), block.data(), static_cast<size_t>(got));
    }
    if (got < 0) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be read"));
    }
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int length = 0;
  EVP_DigestFinal_ex(context.get(), digest.data(), &length);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), length));
}

std::string DirectoryName(const std::string& path) {
  std::error_code error;
  fs::path folder = fs::absolute(path, error).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  return folder.filename().string();
}

// Whether there is anything of that name, also what cannot be read.
bool Exists(const std::string& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

// generation.json and kinds.json, where they are.
absl::Status ReadSamplingFiles(ModelDirectory& directory) {
  const int64_t vocab_size = directory.config.vocab_size;
  const std::string kinds_path =
      absl::StrCat(directory.path, "/", kTokenKindsFile);
  if (Exists(kinds_path)) {
    TXL_ASSIGN_OR_RETURN(const std::string text,
                         ReadRegularFile(kinds_path, kMaxJsonBytes));
    TXL_ASSIGN_OR_RETURN(TokenKinds kinds,
                         ParseTokenKinds(text, kinds_path, vocab_size));
    directory.kinds = std::make_shared<const TokenKinds>(std::move(kinds));
  }
  const std::string path = absl::StrCat(directory.path, "/generation.json");
  if (!Exists(path)) return absl::OkStatus();
  TXL_ASSIGN_OR_RETURN(const std::string text,
                       ReadRegularFile(path, kMaxJsonBytes));
  TXL_ASSIGN_OR_RETURN(directory.generation,
                       ParseGenerationDefaults(text, path, vocab_size));
  const absl::Status valid = ValidateSamplingParams(
      ApplyOverrides(SamplingParams(), directory.generation.sampling),
      vocab_size, directory.kinds != nullptr);
  if (valid.ok()) return valid;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": field ", valid.message()));
}

std::string WeightsPath(const ModelDirectory& directory) {
  return absl::StrCat(directory.path, "/model.safetensors");
}

}  // namespace

bool IsForeignConfig(absl::string_view text) {
  const absl::StatusOr<nlohmann::json> config = ParseJsonObject(text, "");
  return config.ok() &&
         (config->contains("model_type") || config->contains("pre_lnorm"));
}

absl::StatusOr<ModelDirectory> ReadModelDirectory(const std::string& path) {
  ModelDirectory directory;
  directory.path = path;
  directory.name = DirectoryName(path);
  const std::string config_path = absl::StrCat(path, "/config.json");
  if (!Exists(config_path)) {
    return absl::NotFoundError(
        absl::StrCat(config_path, ": is not there; ", kConvertHint));
  }
  TXL_ASSIGN_OR_RETURN(const std::string config,
                       ReadRegularFile(config_path, kMaxJsonBytes));
  if (IsForeignConfig(config)) {
    return absl::InvalidArgumentError(
        absl::StrCat(config_path, ": is another code base's; ", kConvertHint));
  }
  TXL_ASSIGN_OR_RETURN(directory.config, ParseModelConfig(config, config_path));

  TXL_RETURN_IF_ERROR(ReadSamplingFiles(directory));
  if (Exists(absl::StrCat(path, "/tokenizer.json"))) {
    TXL_ASSIGN_OR_RETURN(directory.vocabulary,
                         LoadVocabulary(path, directory.config.vocab_size));
  }
  return directory;
}

absl::StatusOr<std::string> FingerprintOf(const ModelDirectory& directory) {
  return Sha256OfFiles(
      {absl::StrCat(directory.path, "/config.json"), WeightsPath(directory)});
}

absl::StatusOr<ModelDirectory> OpenModelDirectory(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(ModelDirectory directory, ReadModelDirectory(path));
  TXL_ASSIGN_OR_RETURN(directory.fingerprint, FingerprintOf(directory));
  return directory;
}

absl::StatusOr<Weights> LoadDirectoryWeights(const ModelDirectory& directory,
                                             const LoadOptions& options) {
  return LoadWeights(directory.config, WeightsPath(directory), options);
}

}  // namespace txl
