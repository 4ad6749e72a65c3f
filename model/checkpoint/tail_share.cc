#include "model/checkpoint/tail_share.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace txl {

absl::Status SetTailShare(double share, Weights& weights) {
  if (!(share > 0 && share < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tail share is ", share, ", must be in (0, 1)"));
  }
  if (!weights.cluster_b.defined()) {
    return absl::InvalidArgumentError(
        "a tail share needs a model with cutoffs");
  }
  const auto words = static_cast<double>(weights.head.front().w.size(0));
  const auto clusters = static_cast<double>(weights.cluster_b.size(0));
  weights.cluster_b.fill_(std::log(share / (1 - share) * words / clusters));
  return absl::OkStatus();
}

}  // namespace txl
