#include "model/convert/container/safetensors_checkpoint.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/safetensors.h"
#include "model/convert/container/byte_source.h"

namespace txl {
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
