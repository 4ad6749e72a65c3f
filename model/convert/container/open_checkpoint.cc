#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "model/convert/container/file_kind.h"
#include "model/convert/container/folder_files.h"
#include "model/convert/container/indexed_shards.h"
#include "model/convert/container/labml_folder.h"
#include "model/convert/container/native_checkpoint.h"
#include "model/convert/container/open_file_checkpoint.h"
#include "model/convert/container/tensor_bundle.h"
#include "model/convert/container/torch_checkpoint.h"

namespace txl {
namespace {

using Result = absl::StatusOr<NativeCheckpoint>;

constexpr uint64_t kMaxNoteBytes = 1 << 20;
// Files that Hugging Face's libraries look for, in their order.
constexpr absl::string_view kMainFiles[] = {
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
};
constexpr char kBundleNote[] = "checkpoint";  // names the newest checkpoint
constexpr char kDeepSpeedNote[] = "latest";   // names the newest sub folder
constexpr char kLabmlInfo[] = "info.json";

// Torch files that lie beside weights and are none.
constexpr absl::string_view kNoWeights[] = {
    "vocab.bin",     "vocab.pt",      "cache.pt",          "corpus.pt",
    "optimizer.pt",  "optimizer.bin", "training_args.bin", "scheduler.pt",
    "scheduler.bin", "scaler.pt",
};

// The prefix that the text file of TensorFlow's Saver names, without its
// folder: checkpoints are moved. Empty when it names none.
std::string NotedPrefix(const std::string& text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::ConsumePrefix(&line, "model_checkpoint_path:")) continue;
    line = absl::StripAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "\"") ||
        !absl::ConsumeSuffix(&line, "\"")) {
      continue;
    }
    const size_t slash = line.find_last_of("/\\");
    return std::string(
        slash == absl::string_view::npos ? line : line.substr(slash + 1));
  }
  return "";
}

Result OpenBundleFolder(const std::string& folder,
                        const std::vector<std::string>& names,
                        const std::vector<std::string>& indexes) {
  if (std::count(names.begin(), names.end(), kBundleNote) > 0) {
    const std::string note = absl::StrCat(folder, "/", kBundleNote);
    TXL_ASSIGN_OR_RETURN(const std::string text,
                         ReadSmallFile(note, kMaxNoteBytes));
    const std::string prefix = NotedPrefix(text);
    if (!prefix.empty()) {
      TXL_ASSIGN_OR_RETURN(const std::string path,
                           FileInside(folder, prefix, note));
      if (indexes.size() != 1 || IsFile(path + kBundleIndexSuffix)) {
        return ReadTensorBundle(path);
      }
    }
  }
  if (indexes.size() == 1) {
    return ReadTensorBundle(absl::StrCat(
        folder, "/", absl::StripSuffix(indexes[0], kBundleIndexSuffix)));
  }
  return Bad(folder, absl::StrCat("holds several TensorFlow checkpoints; give "
                                  "one of them: ",
                                  absl::StrJoin(indexes, ", ")));
}

Result OpenRanks(const std::string& folder,
                 const std::map<std::string, std::string>& files) {
  std::map<std::string, NativeCheckpoint> ranks;
  for (const auto& [rank, name] : files) {
    TXL_ASSIGN_OR_RETURN(ranks[rank],
                         ReadTorchFile(absl::StrCat(folder, "/", name)));
  }
  return JoinRanks(folder, std::move(ranks));
}

// The sub folder that DeepSpeed's note names.
absl::StatusOr<std::string> NotedFolder(const std::string& folder) {
  const std::string note = absl::StrCat(folder, "/", kDeepSpeedNote);
  TXL_ASSIGN_OR_RETURN(const std::string text,
                       ReadSmallFile(note, kMaxNoteBytes));
  return FileInside(folder, absl::StripAsciiWhitespace(text), note);
}

bool MayHoldWeights(const std::string& name) {
  return std::find(std::begin(kNoWeights), std::end(kNoWeights), name) ==
             std::end(kNoWeights) &&
         !absl::StartsWith(name, "rng_state");
}

// Folder and name; "." where the path has no folder.
std::pair<std::string, std::string> SplitPath(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {path.substr(0, std::max<size_t>(slash, 1)), path.substr(slash + 1)};
}

// The one torch or safetensors file in a folder.
Result OpenOnlyFile(const std::string& folder,
                    const std::vector<std::string>& names) {
  const auto has = [&](absl::string_view name) {
    return std::count(names.begin(), names.end(), name) > 0;
  };
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (!MayHoldWeights(name)) continue;
    const auto file = OpenFile(absl::StrCat(folder, "/", name));
    if (!file.ok()) continue;
    const auto kind = KindOf(**file);
    if (!kind.ok() ||
        (*kind != FileKind::kTorch && !absl::EndsWith(name, ".safetensors"))) {
      continue;
    }
    found.push_back(name);
  }
  for (const std::string& name : found) {
    const std::string index = IndexOfShard(name);
    if (index.empty()) continue;
    if (has(index)) return ReadIndexedShards(folder, index);
    return Bad(folder, absl::StrCat("holds ", name,
                                    ", one of several files, "
                                    "but not their index ",
                                    index));
  }
  if (found.size() == 1) {
    return OpenFileCheckpoint(absl::StrCat(folder, "/", found[0]));
  }
  if (found.empty()) return Bad(folder, "is a folder without a checkpoint");
  return Bad(folder, absl::StrCat("holds several checkpoints; give one of "
                                  "them: ",
                                  absl::StrJoin(found, ", ")));
}

// A file that holds tensors, or an index of such files beside it.
Result OpenNamedFile(const std::string& path) {
  const auto [folder, name] = SplitPath(path);
  if (absl::EndsWith(name, kShardIndexSuffix)) {
    return ReadIndexedShards(folder, name);
  }
  return OpenFileCheckpoint(path);
}

Result OpenFolder(const std::string& folder, bool follow_note) {
  TXL_ASSIGN_OR_RETURN(const std::vector<std::string> names, FilesIn(folder));
  const auto has = [&](absl::string_view name) {
    return std::count(names.begin(), names.end(), name) > 0;
  };
  if (has(kLabmlInfo)) return ReadLabmlFolder(folder);
  for (const absl::string_view name : kMainFiles) {
    if (has(name)) return OpenNamedFile(absl::StrCat(folder, "/", name));
  }
  std::vector<std::string> indexes;
  for (const std::string& name : names) {
    if (absl::EndsWith(name, kBundleIndexSuffix)) indexes.push_back(name);
  }
  if (!indexes.empty()) return OpenBundleFolder(folder, names, indexes);
  const auto ranks = RankFiles(names);
  if (ranks.size() > 1) return OpenRanks(folder, ranks);
  if (ranks.empty() && has(kDeepSpeedNote) && follow_note) {
    TXL_ASSIGN_OR_RETURN(const std::string noted, NotedFolder(folder));
    if (IsFolder(noted)) return OpenFolder(noted, /*follow_note=*/false);
  }
  return OpenOnlyFile(folder, names);
}

}  // namespace

absl::StatusOr<NativeCheckpoint> OpenCheckpoint(const std::string& path) {
  Result result = IsFolder(path) ? OpenFolder(path, /*follow_note=*/true)
                  : !IsFile(path) && IsFile(path + kBundleIndexSuffix)
                      ? ReadTensorBundle(path)
                      : OpenNamedFile(path);
  if (result.ok()) result->path = path;
  return result;
}

}  // namespace txl
