#pragma once

// Checkpoints in several files with an index, as Hugging Face's libraries save
// them.

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/convert/container/native_checkpoint.h"

namespace txl {

// Names that end so are of an index: "model.safetensors.index.json",
// "pytorch_model.bin.index.json".
inline constexpr char kShardIndexSuffix[] = ".index.json";

// The files that FOLDER/INDEX names: its weight_map says for every tensor in
// which file of the folder it lies. `data` is null. Errors naming the index:
// NotFound where a file that it names is missing, InvalidArgument where one
// lies outside the folder, lacks a tensor or holds one that it is not said to
// hold, or where the index leaves out a file of its own series
// ("model-00002-of-00003.safetensors"); those of OpenFileCheckpoint.
absl::StatusOr<NativeCheckpoint> ReadIndexedShards(const std::string& folder,
                                                   const std::string& index);

// The index that the name of a shard calls for:
// "pytorch_model.bin.index.json" for "pytorch_model-00001-of-00002.bin", ""
// for names of other files.
std::string IndexOfShard(absl::string_view name);

// Checkpoints of models that were trained in parts: one torch file a rank, as
// DeepSpeed names them.

// The files "mp_rank_NN_model_states.pt" among `names` by NN.
std::map<std::string, std::string> RankFiles(
    const std::vector<std::string>& names);

// Joins what the ranks' files hold: tensors are named "rank.NN.PLACE", data is
// {"rank": {NN: data}}. Errors: InvalidArgument naming the folder when ranks
// do not count from 0 without a gap.
absl::StatusOr<NativeCheckpoint> JoinRanks(
    const std::string& folder, std::map<std::string, NativeCheckpoint> ranks);

}  // namespace txl
