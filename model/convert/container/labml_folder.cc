#include "model/convert/container/labml_folder.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/convert/container/byte_source.h"
#include "model/convert/container/folder_files.h"
#include "model/convert/container/npy_array.h"
#include "model/convert/container/torch_checkpoint.h"

namespace txl {
namespace {

using nlohmann::json;

absl::Status BadEntry(const std::string& info, const std::string& entry,
                      absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      info, ": ", absl::CHexEscape(entry.substr(0, 256)), " ", what));
}

// A run has as many files as tensors: none stays open.
absl::StatusOr<StoredTensor> ReadNpyFile(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(const auto file, OpenFile(path));
  return ReadNpy(ReopenedFile(path, file->size()));
}

absl::StatusOr<NativeCheckpoint> ReadNpyModels(const std::string& folder,
                                               const std::string& info,
                                               const json& models) {
  NativeCheckpoint checkpoint;
  checkpoint.path = folder;
  checkpoint.container = "npy folder";
  for (const auto& [model, keys] : models.items()) {
    if (!keys.is_object())
      return BadEntry(info, model, "maps no keys to files");
    for (const auto& [key, file] : keys.items()) {
      if (!file.is_string()) return BadEntry(info, key, "names no file");
      TXL_ASSIGN_OR_RETURN(const std::string path,
                           FileInside(folder, file.get<std::string>(), info));
      const std::string name =
          models.size() == 1 ? key : absl::StrCat(model, ".", key);
      TXL_ASSIGN_OR_RETURN(StoredTensor tensor, ReadNpyFile(path));
      if (!checkpoint.tensors.emplace(name, std::move(tensor)).second) {
        return BadEntry(info, name, "is there twice");
      }
    }
  }
  return checkpoint;
}

}  // namespace

absl::StatusOr<NativeCheckpoint> ReadLabmlFolder(const std::string& folder) {
  const std::string info = folder + "/info.json";
  TXL_ASSIGN_OR_RETURN(const json models, ReadJsonObjectFile(info));
  if (models.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(info, ": names no model"));
  }
  const auto first = models.begin();
  if (!first->is_string()) return ReadNpyModels(folder, info, models);
  if (models.size() > 1) {
    return BadEntry(info, first.key(),
                    "is one of several models; give the file of one");
  }
  TXL_ASSIGN_OR_RETURN(const std::string path,
                       FileInside(folder, first->get<std::string>(), info));
  return ReadTorchFile(path);
}

}  // namespace txl
