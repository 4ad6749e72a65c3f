#include "model/convert/family/family.h"

namespace txl {

std::vector<int64_t> PlannedTensor::shape() const {
  std::vector<int64_t> shape = pieces.front().shape;
  for (size_t i = 1; i < pieces.size(); ++i) {
    shape[axis] += pieces[i].shape[axis];
  }
  return shape;
}

absl::string_view FieldOriginName(FieldOrigin origin) {
  switch (origin) {
    case FieldOrigin::kWeights:
      return "weights";
    case FieldOrigin::kSpec:
      return "spec";
    case FieldOrigin::kCheckpoint:
      return "checkpoint";
    case FieldOrigin::kFamily:
      return "family default";
  }
  return "";
}

}  // namespace txl
