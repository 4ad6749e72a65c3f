#include "model/convert/container/open_file_checkpoint.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/safetensors.h"
#include "model/convert/container/byte_source.h"
#include "model/convert/container/file_kind.h"
#include "model/convert/container/folder_files.h"
#include "model/convert/container/tensor_bundle.h"
#include "model/convert/container/torch_checkpoint.h"

namespace txl {
namespace {

// "model.ckpt-5" of "model.ckpt-5.data-00000-of-00001", else nothing.
std::optional<std::string> PrefixOfData(const std::string& path) {
  const size_t at = path.rfind(".data-");
  if (at == std::string::npos || !absl::StrContains(path.substr(at), "-of-")) {
    return std::nullopt;
  }
  const std::string prefix = path.substr(0, at);
  if (!IsFile(prefix + kBundleIndexSuffix)) return std::nullopt;
  return prefix;
}

}  // namespace

absl::StatusOr<NativeCheckpoint> OpenFileCheckpoint(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(const auto file, OpenFile(path));
  if (const auto prefix = PrefixOfData(path)) return ReadTensorBundle(*prefix);
  TXL_ASSIGN_OR_RETURN(const FileKind kind, KindOf(*file));
  // A name that promises a format gets that format's errors.
  if (kind == FileKind::kSafetensors ||
      (file->size() > 0 && absl::EndsWith(path, ".safetensors") &&
       kind == FileKind::kForeign)) {
    return ReadSafetensorsFile(path);
  }
  switch (kind) {
    case FileKind::kTorch:
      return ReadTorchFile(path);
    case FileKind::kBundleIndex:
      if (!absl::EndsWith(path, kBundleIndexSuffix)) {
        return Bad(path, "is an index whose name does not end in .index");
      }
      return ReadTensorBundle(
          std::string(absl::StripSuffix(path, kBundleIndexSuffix)));
    case FileKind::kSafetensors:
    case FileKind::kForeign:
      break;
  }
  return Bad(path, Foreign(*file));
}

absl::StatusOr<NativeCheckpoint> ReadSafetensorsFile(const std::string& path) {
  // The reader checks the header; it maps the file, whose pages would count as
  // our memory if tensors were read through it.
  TXL_ASSIGN_OR_RETURN(const auto reader, SafetensorsReader::Open(path));
  TXL_ASSIGN_OR_RETURN(const auto file, OpenFile(path));
  uint64_t header_bytes = 0;
  TXL_RETURN_IF_ERROR(
      file->Read(0, absl::MakeSpan(reinterpret_cast<uint8_t*>(&header_bytes),
                                   sizeof(header_bytes))));
  const uint64_t data = sizeof(header_bytes) + header_bytes;
  NativeCheckpoint checkpoint;
  checkpoint.path = path;
  checkpoint.container = "safetensors";
  for (const auto& [name, info] : reader->tensors()) {
    TXL_ASSIGN_OR_RETURN(auto storage,
                         Slice(file, data + info.begin, info.end - info.begin,
                               absl::StrCat(path, ": tensor ", name)));
    TXL_ASSIGN_OR_RETURN(checkpoint.tensors[name],
                         RowMajor(info.dtype, info.shape, std::move(storage)));
  }
  if (!reader->metadata().empty()) checkpoint.data = reader->metadata();
  return checkpoint;
}

}  // namespace txl
