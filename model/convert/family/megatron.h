#pragma once

// The shards of a model that was trained in parts: "rank.NN." before the places
// of each rank's tensors.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/convert/family/plan_builder.h"

namespace txl {
// Where each rank's state dict lies, "rank.00.module." and so on in the order
// of ranks; of a checkpoint in one file its single place. `signature`: a tensor
// that each has. Errors: InvalidArgument naming the rank that lacks it, be it
// one whose other tensors are there.
absl::StatusOr<std::vector<std::string>> RankPlaces(
    const NativeCheckpoint& checkpoint, absl::string_view signature);

// All ranks' tables; that of rank 0 is the builder's, which must outlive this.
class Ranks {
 public:
  // `places`: of RankPlaces.
  Ranks(const PlanInput& input, const std::vector<std::string>& places,
        PlanBuilder& builder);

  int64_t count() const { return static_cast<int64_t>(others_.size()) + 1; }

  // A parameter that is cut over the ranks, in their order; `shape` is one
  // rank's share.
  std::vector<StoredTensor> Cut(const std::string& name,
                                const std::vector<int64_t>& shape);
  // A parameter that every rank has whole: that of rank 0.
  StoredTensor Copied(const std::string& name,
                      const std::vector<int64_t>& shape);
  // Lets the tensor of all ranks but the first be.
  void Ignore(const std::string& name);
  absl::Status Finish() const;

 private:
  PlanBuilder& builder_;
  std::vector<TensorTable> others_;
};

}  // namespace txl
