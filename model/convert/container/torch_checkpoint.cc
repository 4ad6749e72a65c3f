#include "model/convert/container/torch_checkpoint.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/base/status_macros.h"
#include "model/convert/container/plain_data.h"
#include "model/convert/container/torch_legacy.h"
#include "model/convert/container/torch_zip.h"
#include "model/convert/container/zip_directory.h"
#include "model/convert/container/zip_fields.h"

namespace txl {
namespace {

constexpr uint64_t kTarMagicOffset = 257;

bool LooksLikeTar(const ByteSource& file) {
  const absl::StatusOr<std::string> magic = ReadText(file, kTarMagicOffset, 5);
  return magic.ok() && *magic == "ustar";
}

absl::StatusOr<NativeCheckpoint> Named(absl::StatusOr<PlainData> plain,
                                       absl::string_view container,
                                       const std::string& path) {
  if (!plain.ok()) return std::move(plain).status();
  NativeCheckpoint checkpoint;
  checkpoint.path = path;
  checkpoint.container = std::string(container);
  checkpoint.tensors = std::move(plain->tensors);
  checkpoint.data = std::move(plain->data);
  return checkpoint;
}

}  // namespace

bool LooksLikeTorchFile(const ByteSource& file) {
  return LooksLikeZip(file) || LooksLikeTorchLegacy(file);
}

absl::StatusOr<NativeCheckpoint> ReadTorchBytes(
    std::shared_ptr<const ByteSource> file) {
  const std::string& path = file->name();
  if (LooksLikeZip(*file)) {
    return Named(ReadTorchZip(file), "torch zip", path);
  }
  if (LooksLikeTorchLegacy(*file)) {
    return Named(ReadTorchLegacy(file), "torch legacy", path);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": ",
      file->size() == 0 ? "is an empty file"
      : LooksLikeTar(*file)
          ? "is a tar file, as torch before 0.2 wrote them; not supported"
          : "is no torch file"));
}

absl::StatusOr<NativeCheckpoint> ReadTorchFile(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(auto file, OpenFile(path));
  return ReadTorchBytes(std::move(file));
}

}  // namespace txl
