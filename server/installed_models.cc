#include "server/installed_models.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace txl {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> FoldersIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;  // a folder that cannot be read has none
  for (fs::directory_iterator entry(folder, error), end; entry != end;
       entry.increment(error)) {
    std::error_code unknown;
    if (entry->is_directory(unknown)) names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string InstalledModels() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return "";
  return program.parent_path().parent_path() / "share/txl/models";
}

absl::StatusOr<std::string> FindModel(const std::string& model,
                                      absl::string_view installed) {
  std::error_code error;
  if (model.find('/') != std::string::npos || fs::exists(model, error)) {
    return model;
  }
  const std::vector<std::string> names = FoldersIn(std::string(installed));
  if (std::find(names.begin(), names.end(), model) != names.end()) {
    return absl::StrCat(installed, "/", model);
  }
  return absl::NotFoundError(absl::StrCat(
      "--model: \"", model,
      "\" is neither a folder here nor one of the models "
      "in ",
      installed,
      names.empty() ? ", where there are none" : ", where there are: ",
      absl::StrJoin(names, ", ")));
}

}  // namespace txl
