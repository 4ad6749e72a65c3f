#pragma once

// Checkpoints of models that were trained in parts: one torch file a rank, as
// DeepSpeed names them.

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/convert/container/native_checkpoint.h"

namespace txl {

// The files "mp_rank_NN_model_states.pt" among `names` by NN.
std::map<std::string, std::string> RankFiles(
    const std::vector<std::string>& names);

// Joins what the ranks' files hold: tensors are named "rank.NN.PLACE", data is
// {"rank": {NN: data}}. Errors: InvalidArgument naming the folder when ranks
// do not count from 0 without a gap.
absl::StatusOr<NativeCheckpoint> JoinRanks(
    const std::string& folder, std::map<std::string, NativeCheckpoint> ranks);

}  // namespace txl
