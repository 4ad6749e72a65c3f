#include "model/convert/family/megatron_ranks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "model/convert/family/places.h"

namespace txl {
namespace {

constexpr char kRank[] = "rank";

// The number in "rank.XX.PLACE"; -1 where there is none.
int64_t RankOf(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '.');
  int64_t rank = -1;
  const bool named = parts.size() > 1 && parts[0] == kRank &&
                     absl::SimpleAtoi(parts[1], &rank);
  return named ? rank : -1;
}

// The tensors by rank; -1: of a checkpoint in one file.
std::map<int64_t, std::vector<absl::string_view>> NamesByRank(
    const NativeCheckpoint& checkpoint) {
  std::map<int64_t, std::vector<absl::string_view>> names;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    names[RankOf(name)].push_back(name);
  }
  return names;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> RankPlaces(
    const NativeCheckpoint& checkpoint, absl::string_view signature) {
  const auto names = NamesByRank(checkpoint);
  if (names.size() == 1 && names.contains(-1)) {
    TXL_ASSIGN_OR_RETURN(std::string place, PlaceBefore(checkpoint, signature));
    return std::vector<std::string>{std::move(place)};
  }
  std::vector<std::string> places;
  const std::string inner = absl::StrCat(".", signature);
  for (const auto& [rank, own] : names) {
    const auto found = std::find_if(
        own.begin(), own.end(),
        [&](absl::string_view name) { return absl::EndsWith(name, inner); });
    if (rank != static_cast<int64_t>(places.size()) || found == own.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(checkpoint.path, ": rank ", places.size(),
                       " of the shards has no tensor ", signature));
    }
    places.emplace_back(absl::StripSuffix(*found, signature));
  }
  return places;
}

Ranks::Ranks(const PlanInput& input, const std::vector<std::string>& places,
             PlanBuilder& builder)
    : builder_(builder) {
  for (size_t i = 1; i < places.size(); ++i) {
    others_.emplace_back(input.checkpoint, places[i]);
  }
}

std::vector<StoredTensor> Ranks::Cut(const std::string& name,
                                     const std::vector<int64_t>& shape) {
  std::vector<StoredTensor> pieces = {builder_.table.Take(name, shape)};
  for (TensorTable& table : others_) pieces.push_back(table.Take(name, shape));
  return pieces;
}

StoredTensor Ranks::Copied(const std::string& name,
                           const std::vector<int64_t>& shape) {
  return Cut(name, shape).front();
}

void Ranks::Ignore(const std::string& name) {
  for (TensorTable& table : others_) table.Ignore(name);
}

absl::Status Ranks::Finish() const {
  for (const TensorTable& table : others_) {
    TXL_RETURN_IF_ERROR(table.Finish());
  }
  return absl::OkStatus();
}

}  // namespace txl
