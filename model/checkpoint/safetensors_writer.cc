#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/safetensors.h"

namespace txl {
namespace {

using nlohmann::json;

// The header, filled up with spaces so that the data starts aligned.
absl::StatusOr<std::string> Header(
    const std::string& path, const std::map<std::string, TensorBytes>& tensors,
    const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const TensorInfo info = {tensor.dtype, tensor.shape, 0, 0};
    const auto bytes =
        static_cast<uint64_t>(info.numel() * DTypeBytes(tensor.dtype));
    if (name == "__metadata__" || bytes != tensor.data.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor ", name, " has ", tensor.data.size(),
                       " bytes, its shape ", bytes, ", or a reserved name"));
    }
    header[name] = {{"dtype", std::string(DTypeName(tensor.dtype))},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text =
      header.dump(-1, ' ', false, json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

bool Put(std::FILE* file, const void* data, size_t bytes) {
  return bytes == 0 || std::fwrite(data, 1, bytes, file) == bytes;
}

bool PutAll(std::FILE* file, const std::string& header,
            const std::map<std::string, TensorBytes>& tensors) {
  const uint64_t length = header.size();
  if (!Put(file, &length, sizeof(length)) ||
      !Put(file, header.data(), header.size())) {
    return false;
  }
  for (const auto& [name, tensor] : tensors) {
    if (!Put(file, tensor.data.data(), tensor.data.size())) return false;
  }
  // Written to the disk before the rename: a crash leaves one file or the
  // other whole.
  return std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
}

}  // namespace

absl::Status WriteSafetensors(
    const std::string& path, const std::map<std::string, TensorBytes>& tensors,
    const std::map<std::string, std::string>& metadata) {
  TXL_ASSIGN_OR_RETURN(const std::string header,
                       Header(path, tensors, metadata));
  const std::string temporary = path + ".tmp";
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  bool written = file != nullptr && PutAll(file, header, tensors);
  int error = written ? 0 : errno;
  if (file != nullptr && std::fclose(file) != 0 && written) {
    written = false;
    error = errno;
  }
  if (written && std::rename(temporary.c_str(), path.c_str()) != 0) {
    written = false;
    error = errno;
  }
  if (written) return absl::OkStatus();
  if (file != nullptr) std::remove(temporary.c_str());
  return absl::ErrnoToStatus(error, absl::StrCat(path, ": cannot be written"));
}

}  // namespace txl
