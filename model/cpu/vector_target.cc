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
namespace txl {
namespace {

// What the machine has, whatever was chosen since.
const std::vector<int64_t>& Targets() {
  static const auto* const targets =
      new std::vector<int64_t>(hwy::SupportedAndGeneratedTargets());
  return *targets;
}

}  // namespace

HWY_EXPORT(TargetName);

std::string VectorTarget() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

std::vector<std::string> VectorTargets() {
  std::vector<std::string> names;
  for (const int64_t target : Targets()) {
    names.push_back(hwy::TargetName(target));
  }
  return names;
}

bool UseVectorTarget(const std::string& name) {
  for (const int64_t target : Targets()) {
    if (name != hwy::TargetName(target)) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    return true;
  }
  return false;
}

}  // namespace txl
#endif  // HWY_ONCE
