#include "model/convert/container/rank_shards.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace txl {
namespace {

using nlohmann::json;

constexpr size_t kMaxRankDigits = 4;

// Prefixes the names that tensors have in `data`. The nesting of plain data is
// bounded by whoever read it.
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
