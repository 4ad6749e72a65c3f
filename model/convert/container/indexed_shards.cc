#include "model/convert/container/indexed_shards.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "model/convert/container/folder_files.h"
#include "model/convert/container/open_file_checkpoint.h"

namespace txl {
namespace {

using nlohmann::json;

// File name -> names of its tensors.
using Shards = std::map<std::string, std::set<std::string>>;

// A tensor's name as it may stand in a message.
std::string Shown(const std::string& tensor) {
  return absl::CHexEscape(tensor.substr(0, 256));
}

absl::StatusOr<Shards> ParseWeightMap(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(const json index, ReadJsonObjectFile(path));
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object() || map->empty()) {
    return Bad(path, "has no weight_map");
  }
  Shards shards;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) {
      return Bad(path,
                 absl::StrCat("weight_map gives no file for ", Shown(tensor)));
    }
    shards[file.get<std::string>()].insert(tensor);
  }
  return shards;
}

// "model-00002-of-00003.safetensors" in parts.
struct ShardName {
  absl::string_view stem, total, extension;
  bool operator==(const ShardName&) const = default;
};

// All parts empty for names of other files.
ShardName ParseShardName(absl::string_view name) {
  constexpr size_t kDigits = 5;
  constexpr absl::string_view kOf = "-of-";
  const size_t of = name.rfind(kOf);
  if (of == absl::string_view::npos || of < kDigits + 1) return {};
  const absl::string_view stem = name.substr(0, of - kDigits - 1);
  const absl::string_view number = name.substr(of - kDigits, kDigits);
  const absl::string_view total = name.substr(of + kOf.size(), kDigits);
  const absl::string_view extension =
      name.substr(of + kOf.size() + total.size());
  const auto digits = [](absl::string_view text) {
    return text.size() == kDigits &&
           std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  };
  if (stem.empty() || name[stem.size()] != '-' || !digits(number) ||
      !digits(total) || !absl::StartsWith(extension, ".")) {
    return {};
  }
  return {stem, total, extension};
}

// Every file that belongs to a named one is named as well: else the index was
// cut or is another checkpoint's.
absl::Status CheckSeries(const std::string& folder, const std::string& path,
                         const Shards& shards) {
  TXL_ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesIn(folder));
  for (const std::string& file : files) {
    const ShardName name = ParseShardName(file);
    if (name.stem.empty() || shards.contains(file)) continue;
    for (const auto& [listed, tensors] : shards) {
      if (ParseShardName(listed) != name) continue;
      return Bad(path, absl::StrCat("names ", listed, ", but not ", file,
                                    " beside it"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<NativeCheckpoint> ReadShard(
    const std::string& folder, const std::string& name, const std::string& path,
    const std::set<std::string>& listed) {
  TXL_ASSIGN_OR_RETURN(const std::string file, FileInside(folder, name, path));
  if (!IsFile(file)) {
    return absl::NotFoundError(
        absl::StrCat(path, ": names ", name, ", which is missing"));
  }
  TXL_ASSIGN_OR_RETURN(NativeCheckpoint shard, OpenFileCheckpoint(file));
  for (const std::string& tensor : listed) {
    if (shard.tensors.contains(tensor)) continue;
    return Bad(path, absl::StrCat("says that ", name, " holds tensor ",
                                  Shown(tensor), ", which is not there"));
  }
  for (const auto& [tensor, stored] : shard.tensors) {
    if (listed.contains(tensor)) continue;
    return Bad(path, absl::StrCat("does not list tensor ", Shown(tensor),
                                  " of ", name));
  }
  return shard;
}

}  // namespace

absl::StatusOr<NativeCheckpoint> ReadIndexedShards(const std::string& folder,
                                                   const std::string& index) {
  const std::string path = absl::StrCat(folder, "/", index);
  TXL_ASSIGN_OR_RETURN(const Shards shards, ParseWeightMap(path));
  TXL_RETURN_IF_ERROR(CheckSeries(folder, path, shards));
  NativeCheckpoint checkpoint;
  checkpoint.path = folder;
  for (const auto& [name, listed] : shards) {
    TXL_ASSIGN_OR_RETURN(NativeCheckpoint shard,
                         ReadShard(folder, name, path, listed));
    checkpoint.container = absl::StrCat(shard.container, " shards");
    checkpoint.tensors.merge(shard.tensors);
  }
  return checkpoint;
}

std::string IndexOfShard(absl::string_view name) {
  const ShardName parts = ParseShardName(name);
  if (parts.stem.empty()) return "";
  return absl::StrCat(parts.stem, parts.extension, kShardIndexSuffix);
}

namespace {

using nlohmann::json;

constexpr size_t kMaxRankDigits = 4;

// Prefixes the names that tensors have in `data`. The reader of plain data
// has bounded its nesting.
void RenameTensors(const std::string& prefix, json& data) {
  if (data.is_object()) {
    const auto tensor = data.find(kTensorKey);
    if (tensor != data.end() && tensor->is_string()) {
      *tensor = prefix + tensor->get<std::string>();
      return;
    }
  }
  if (!data.is_structured()) return;
  for (json& child : data) RenameTensors(prefix, child);
}

}  // namespace

std::map<std::string, std::string> RankFiles(
    const std::vector<std::string>& names) {
  std::map<std::string, std::string> ranks;
  for (const std::string& name : names) {
    absl::string_view rank = name;
    if (!absl::ConsumePrefix(&rank, "mp_rank_") ||
        !absl::ConsumeSuffix(&rank, "_model_states.pt") || rank.empty() ||
        rank.size() > kMaxRankDigits ||
        !std::all_of(rank.begin(), rank.end(), absl::ascii_isdigit)) {
      continue;
    }
    ranks[std::string(rank)] = name;
  }
  return ranks;
}

absl::StatusOr<NativeCheckpoint> JoinRanks(
    const std::string& folder, std::map<std::string, NativeCheckpoint> ranks) {
  NativeCheckpoint joined;
  joined.path = folder;
  joined.data = json::object();
  int expected = 0;
  for (auto& [rank, checkpoint] : ranks) {
    int number = -1;
    if (!absl::SimpleAtoi(rank, &number) || number != expected++) {
      return absl::InvalidArgumentError(absl::StrCat(
          folder, ": the file of rank ", expected - 1, " is missing"));
    }
    joined.container = checkpoint.container;
    const std::string prefix = absl::StrCat("rank.", rank, ".");
    for (auto& [name, tensor] : checkpoint.tensors) {
      joined.tensors[prefix + name] = std::move(tensor);
    }
    RenameTensors(prefix, checkpoint.data);
    joined.data["rank"][rank] = std::move(checkpoint.data);
  }
  return joined;
}

}  // namespace txl
