#pragma once

// What a family fills while it plans: its tensors, its fields, its plan.

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/base/status_macros.h"
#include "model/convert/family/config_draft.h"
#include "model/convert/family/family.h"
#include "model/convert/family/tensor_table.h"

namespace txl {

struct PlanBuilder {
  // `place`: of the state dict in the checkpoint, "" or with a final dot.
  PlanBuilder(absl::string_view family, const PlanInput& input,
              absl::string_view place)
      : path(input.checkpoint.path),
        table(input.checkpoint, place),
        draft(input.spec) {
    plan.family = std::string(family);
  }

  void Add(std::string name, StoredTensor tensor) {
    plan.tensors[std::move(name)] = {{std::move(tensor)}, 0};
  }
  void AddToLayer(int64_t layer, absl::string_view name, StoredTensor tensor) {
    Add(absl::StrCat("layer.", layer, ".", name), std::move(tensor));
  }
  void Note(std::string oddity) { plan.oddities.push_back(std::move(oddity)); }

  // The plan, or the first error of the tensors, then of the fields.
  absl::StatusOr<ConversionPlan> Finish() && {
    TXL_RETURN_IF_ERROR(table.Finish());
    TXL_RETURN_IF_ERROR(draft.Finish(path, plan));
    return std::move(plan);
  }

  std::string path;
  TensorTable table;
  ConfigDraft draft;
  ConversionPlan plan;
};

}  // namespace txl
