#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "model/config/token_kinds_file.h"
#include "model/convert/container/torch_checkpoint.h"
#include "model/convert/vocabulary/native_vocabulary.h"
#include "model/convert/vocabulary/vocabulary_files.h"
#include "model/convert/vocabulary/vocabulary_kind.h"
#include "model/music/event_ids.h"
#include "model/text/sentencepiece_model.h"
#include "model/text/tokenizer_fields.h"
#include "model/text/utf8.h"
#include "model/text/vocabulary_loader.h"

namespace txl {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

constexpr const char* kNames[] = {
    "tokenizer.json", "dictionary.pkl", "vocab.pkl",
    "vocab.bin",      "vocab.json",     "vocab.txt",
    "cache.pt",       "cache.pkl",      "spiece.model"};

// The largest SentencePiece models have a few hundred thousand pieces.
constexpr std::uintmax_t kMaxModelBytes = 64 << 20;

absl::Status At(absl::string_view place, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(place, ": ", status.message()));
}

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string Source(absl::string_view place, absl::string_view notes) {
  return notes.empty() ? std::string(place)
                       : absl::StrCat(place, " (", notes, ")");
}

absl::StatusOr<VocabularyFiles> Described(
    absl::StatusOr<DescribedVocabulary> described, absl::string_view place) {
  if (!described.ok()) return At(place, described.status());
  return VocabularyFiles{std::move(described->files),
                         Source(place, described->notes)};
}

absl::StatusOr<VocabularyFiles> FromData(const json& data,
                                         const VocabularyRequest& request,
                                         absl::string_view place) {
  const absl::StatusOr<NativeVocabulary> vocabulary = VocabularyFromData(data);
  if (!vocabulary.ok()) return At(place, vocabulary.status());
  return Described(
      DescribeVocabulary(*vocabulary, {request.family, request.vocab_size}),
      place);
}

// A tokenizer.json of ours with the files that go with it.
absl::StatusOr<VocabularyFiles> FromOwn(const fs::path& path, const json& own,
                                        int64_t vocab_size) {
  const fs::path directory = path.parent_path();
  const auto loaded = LoadVocabulary(directory.string(), vocab_size);
  if (!loaded.ok()) return At(directory.string(), loaded.status());
  VocabularyFiles found;
  found.source = path.string();
  std::vector<std::string> names = {std::string(kTokenizerFile)};
  if (const auto file = own.find("file"); file != own.end()) {
    names.push_back(file->get<std::string>());
  }
  for (const char* beside : {"generation.json", kTokenKindsFile}) {
    if (IsFile(directory / beside)) names.emplace_back(beside);
  }
  for (const std::string& name : names) {
    TXL_ASSIGN_OR_RETURN(
        found.files[name],
        ReadRegularFile(directory / name, kMaxVocabularyFileBytes));
  }
  const std::vector<TokenKind> kinds = KindsOfMusic(**loaded);
  if (!kinds.empty()) {
    found.files.try_emplace(kTokenKindsFile, TokenKindsToJson(kinds));
  }
  return found;
}

absl::StatusOr<VocabularyFiles> FromJson(const fs::path& path,
                                         absl::string_view content,
                                         const VocabularyRequest& request) {
  const json data = json::parse(content, nullptr, false);
  if (data.is_discarded()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), ": is not JSON"));
  }
  if (path.filename() == std::string(kTokenizerFile) && data.is_object() &&
      data.contains("kind")) {
    return FromOwn(path, data, request.vocab_size);
  }
  return FromData(data, request, path.string());
}

bool IsPickle(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".pkl" || extension == ".bin" || extension == ".pt" ||
         extension == ".pth" || extension == ".pickle";
}

absl::StatusOr<VocabularyFiles> FromFile(const fs::path& path,
                                         const VocabularyRequest& request) {
  if (IsPickle(path)) {
    TXL_ASSIGN_OR_RETURN(const json data, ReadPickleData(path.string()));
    return FromData(data, request, path.string());
  }
  TXL_ASSIGN_OR_RETURN(std::string content,
                       ReadRegularFile(path, kMaxVocabularyFileBytes));
  if (path.extension() == ".model") {
    return Described(
        DescribeSentencePiece(std::move(content), request.vocab_size),
        path.string());
  }
  TXL_ASSIGN_OR_RETURN(const absl::string_view text,
                       TextOfFile(content, path.string()));
  if (path.extension() == ".json") return FromJson(path, text, request);
  const absl::StatusOr<NativeVocabulary> vocabulary = VocabularyFromLines(text);
  if (!vocabulary.ok()) return At(path.string(), vocabulary.status());
  return Described(
      DescribeVocabulary(*vocabulary, {request.family, request.vocab_size}),
      path.string());
}

// tokenizer.json is also a name of Hugging Face's; theirs has no "kind".
bool IsOwnTokenizer(const fs::path& path) {
  const absl::StatusOr<std::string> content =
      ReadRegularFile(path, kMaxVocabularyFileBytes);
  if (!content.ok()) return false;
  const json data = json::parse(*content, nullptr, false);
  return data.is_object() && data.contains("kind");
}

// The only other SentencePiece model in the folder.
std::optional<fs::path> OtherModel(const fs::path& folder) {
  std::optional<fs::path> only;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() != ".model" || !IsFile(path)) continue;
    // Checkpoints have that name too.
    if (fs::file_size(path, error) > kMaxModelBytes || error) continue;
    const absl::StatusOr<std::string> content =
        ReadRegularFile(path, kMaxVocabularyFileBytes);
    if (!content.ok() || !ParseSentencePieceModel(*content).ok()) continue;
    if (only) return std::nullopt;
    only = path;
  }
  return only;
}

std::optional<fs::path> FindInFolder(const fs::path& folder) {
  for (const char* name : kNames) {
    const fs::path path = folder / name;
    if (!IsFile(path)) continue;
    if (name == kTokenizerFile && !IsOwnTokenizer(path)) continue;
    return path;
  }
  return OtherModel(folder);
}

fs::path FolderOf(const std::string& checkpoint) {
  const fs::path path(checkpoint);
  std::error_code error;
  if (fs::is_directory(path, error)) return path;
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

absl::StatusOr<VocabularyFiles> FromRequest(const VocabularyRequest& request) {
  const fs::path path(request.tokenizer_path);
  std::error_code error;
  if (!fs::is_directory(path, error)) return FromFile(path, request);
  const std::optional<fs::path> inside = FindInFolder(path);
  if (!inside) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), ": has no file of a vocabulary"));
  }
  return FromFile(*inside, request);
}

}  // namespace

absl::StatusOr<VocabularyFiles> FindVocabulary(
    const VocabularyRequest& request) {
  const NativeCheckpoint& checkpoint = request.checkpoint;
  if (request.tokenizer_path == "none") return VocabularyFiles();
  if (!request.tokenizer_path.empty()) return FromRequest(request);
  if (HoldsVocabObject(checkpoint.data)) {
    return FromData(checkpoint.data["vocab"], request,
                    absl::StrCat(checkpoint.path, ": vocab"));
  }
  if (request.family == "sorter" && request.vocab_size <= 10) {
    return Described(DescribeDigits(), "the family");
  }
  const std::optional<fs::path> beside =
      FindInFolder(FolderOf(checkpoint.path));
  if (!beside) return VocabularyFiles();
  return FromFile(*beside, request);
}

}  // namespace txl
