#include "model/convert/container/safetensors_checkpoint.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/safetensors.h"
#include "model/convert/container/byte_source.h"
#include "model/convert/container/folder_files.h"

namespace txl {
namespace {

using nlohmann::json;

// File name -> names of its tensors.
using Shards = std::map<std::string, std::set<std::string>>;

absl::StatusOr<Shards> ParseWeightMap(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(const json index, ReadJsonObjectFile(path));
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object() || map->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has no weight_map"));
  }
  Shards shards;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": weight_map gives no file for ",
                       absl::CHexEscape(tensor.substr(0, 256))));
    }
    shards[file.get<std::string>()].insert(tensor);
  }
  return shards;
}

}  // namespace

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

absl::StatusOr<NativeCheckpoint> ReadSafetensorsShards(
    const std::string& folder, const std::string& index) {
  const std::string path = absl::StrCat(folder, "/", index);
  TXL_ASSIGN_OR_RETURN(const Shards shards, ParseWeightMap(path));
  NativeCheckpoint checkpoint;
  checkpoint.path = folder;
  checkpoint.container = "safetensors shards";
  for (const auto& [name, listed] : shards) {
    TXL_ASSIGN_OR_RETURN(const std::string file,
                         FileInside(folder, name, path));
    TXL_ASSIGN_OR_RETURN(NativeCheckpoint shard, ReadSafetensorsFile(file));
    for (const std::string& tensor : listed) {
      if (shard.tensors.count(tensor) != 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": says that ", name, " holds tensor ",
          absl::CHexEscape(tensor.substr(0, 256)), ", which is not there"));
    }
    for (auto& [tensor, stored] : shard.tensors) {
      if (listed.count(tensor) == 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            path, ": does not list tensor ", tensor, " of ", name));
      }
      checkpoint.tensors[tensor] = std::move(stored);
    }
  }
  return checkpoint;
}

}  // namespace txl
