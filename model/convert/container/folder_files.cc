#include "model/convert/container/folder_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/config/json_fields.h"
#include "model/convert/container/byte_source.h"

namespace txl {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxJsonBytes = 64 << 20;

}  // namespace

absl::StatusOr<std::string> FileInside(const std::string& folder,
                                       absl::string_view name,
                                       absl::string_view origin) {
  const bool plain =
      !name.empty() && name != "." && name != ".." &&
      name.find_first_of("/\\") == absl::string_view::npos &&
      std::none_of(name.begin(), name.end(), absl::ascii_iscntrl);
  if (!plain) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": \"", absl::CHexEscape(name.substr(0, 256)),
                     "\" is not a name of a file in its folder"));
  }
  return absl::StrCat(folder, "/", name);
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          uint64_t max_bytes) {
  TXL_ASSIGN_OR_RETURN(const auto file, OpenFile(path));
  if (file->size() > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is larger than ", max_bytes, " bytes"));
  }
  std::string text(file->size(), '\0');
  TXL_RETURN_IF_ERROR(file->Read(
      0, absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size())));
  return text;
}

absl::StatusOr<nlohmann::json> ReadJsonObjectFile(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(const std::string text,
                       ReadSmallFile(path, kMaxJsonBytes));
  return ParseJsonObject(text, path);
}

absl::StatusOr<std::vector<std::string>> FilesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (IsFile(entry->path())) names.push_back(entry->path().filename());
  }
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": cannot be listed: ", error.message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool IsFile(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool IsFolder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

}  // namespace txl
