#include "model/train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "model/config/token_kinds_file.h"
#include "model/text/ngram_table.h"
#include "model/text/tokenizer_fields.h"

namespace txl {
namespace {

// The file that the folder's tokenizer.json names; empty: none.
std::string VocabularyFileOf(const std::string& folder) {
  const absl::StatusOr<std::string> text = ReadRegularFile(
      absl::StrCat(folder, "/", kTokenizerFile), kMaxTokenizerFileBytes);
  if (!text.ok()) return "";
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object() || !json.contains("file")) return "";
  return json["file"].is_string() ? json["file"].get<std::string>() : "";
}

// What a crash leaves of files that are written anew (program/output_file.h).
std::vector<std::string> TemporaryFiles() {
  std::vector<std::string> names;
  for (const std::string name :
       {"model.safetensors", kCheckpointFile, kNgramsName}) {
    names.push_back(name + ".tmp");
  }
  return names;
}

bool IsFileOrLink(const std::string& path) {
  std::error_code ignored;
  const auto type = std::filesystem::symlink_status(path, ignored).type();
  return type == std::filesystem::file_type::regular ||
         type == std::filesystem::file_type::symlink;
}

}  // namespace

std::vector<std::string> RunFiles(const std::string& folder) {
  std::vector<std::string> names = DescribingFiles(folder);
  for (std::string& name : TemporaryFiles()) names.push_back(std::move(name));
  // No model has a vocabulary elsewhere, whatever its tokenizer.json says.
  std::erase_if(names, [](const std::string& name) {
    return absl::StrContains(name, '/');
  });
  names.insert(names.end(), {"model.safetensors", kCheckpointFile, kNgramsName,
                             kTrainingLogFile, kLossChartFile});
  return names;
}

absl::Status MakeFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(folder, ": ", error.message()));
}

std::vector<std::string> DescribingFiles(const std::string& folder) {
  std::vector<std::string> names = {"config.json", std::string(kTokenizerFile),
                                    "generation.json", kTokenKindsFile};
  const std::string vocabulary = VocabularyFileOf(folder);
  if (!vocabulary.empty()) names.push_back(vocabulary);
  return names;
}

FolderContent ContentOf(const std::string& folder) {
  const auto has = [&](const std::string& name) {
    return IsFileOrLink(absl::StrCat(folder, "/", name));
  };
  if (has(kCheckpointFile)) return FolderContent::kCheckpoint;
  for (const std::string& name : RunFiles(folder)) {
    if (has(name)) return FolderContent::kModel;
  }
  std::error_code ignored;
  const bool nothing = !std::filesystem::exists(folder, ignored) ||
                       (std::filesystem::is_directory(folder, ignored) &&
                        std::filesystem::is_empty(folder, ignored));
  return nothing ? FolderContent::kNothing : FolderContent::kOther;
}

namespace {

absl::Status Remove(const std::string& folder,
                    const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(folder, "/", name);
    std::error_code error;
    if (IsFileOrLink(path)) std::filesystem::remove(path, error);
    if (error) {
      return absl::PermissionDeniedError(
          absl::StrCat(path, ": cannot be removed: ", error.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RemoveRunFiles(const std::string& folder) {
  return Remove(folder, RunFiles(folder));
}

absl::Status RemoveTemporaryFiles(const std::string& folder) {
  return Remove(folder, TemporaryFiles());
}

absl::StatusOr<std::unique_ptr<RunLock>> RunLock::Take(
    const std::string& folder) {
  TXL_RETURN_IF_ERROR(MakeFolder(folder));
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(folder, ": cannot be opened: ", std::strerror(errno)));
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(fd);
    return absl::FailedPreconditionError(
        absl::StrCat(folder, ": another training run is writing there"));
  }
  return std::unique_ptr<RunLock>(new RunLock(fd));
}

RunLock::~RunLock() { ::close(fd_); }

}  // namespace txl
