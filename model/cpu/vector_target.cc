#include "model/cpu/vector_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/cpu/vector_target.cc"
#include <hwy/foreach_target.h>
// foreach_target.h includes this file once per instruction set.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace txl {
namespace HWY_NAMESPACE {

const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace txl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <atomic>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/cpu/tile_product.h"

namespace txl {
namespace {

constexpr char kTileTarget[] = "AMX";

// What the machine has, whatever was chosen since.
const std::vector<int64_t>& Targets() {
  static const auto* const targets =
      new std::vector<int64_t>(hwy::SupportedAndGeneratedTargets());
  return *targets;
}

// Tiles join the vectors that have VNNI.
bool MayUseTiles() { return Targets().front() == HWY_AVX3_DL && HasTiles(); }

std::atomic<bool>& TilesChosen() {
  static std::atomic<bool> chosen(MayUseTiles());
  return chosen;
}

// A file that was not compiled for the target runs with the best one behind it:
// Highway's better targets are lower bits.
void Choose(int64_t target, bool tiles) {
  int64_t targets = 0;
  for (const int64_t one : Targets()) {
    if (one >= target) targets |= one;
  }
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(targets);
  TilesChosen() = tiles;
}

}  // namespace

HWY_EXPORT(TargetName);

std::string VectorBits() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

std::string VectorTarget() { return UsesTiles() ? kTileTarget : VectorBits(); }

bool UsesTiles() { return TilesChosen(); }

std::vector<std::string> VectorTargets() {
  std::vector<std::string> names;
  if (MayUseTiles()) names.push_back(kTileTarget);
  for (const int64_t target : Targets()) {
    names.push_back(hwy::TargetName(target));
  }
  return names;
}

bool UseVectorTarget(const std::string& name) {
  if (absl::EqualsIgnoreCase(name, kTileTarget) && MayUseTiles()) {
    Choose(Targets().front(), true);
    return true;
  }
  for (const int64_t target : Targets()) {
    if (!absl::EqualsIgnoreCase(name, hwy::TargetName(target))) continue;
    Choose(target, false);
    return true;
  }
  return false;
}

absl::Status CheckVectorTarget(const std::string& setting) {
  std::vector<std::string> names = VectorTargets();
  names.insert(names.begin(), kAutoVectorTarget);
  for (const std::string& name : names) {
    if (absl::EqualsIgnoreCase(name, setting)) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "vector-target: \"", setting,
      "\" is not one of this machine's: ", absl::StrJoin(names, ", ")));
}

}  // namespace txl
#endif  // HWY_ONCE
