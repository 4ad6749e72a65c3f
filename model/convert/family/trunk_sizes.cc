#include "model/convert/family/trunk_sizes.h"

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 20;

}  // namespace

bool SetTrunkSizes(const TrunkSizes& sizes, PlanBuilder& builder) {
  struct Field {
    const char* name;
    int64_t size;
  };
  const Field fields[] = {{"n_layer", sizes.layers},
                          {"n_head", sizes.heads},
                          {"d_head", sizes.d_head},
                          {"d_model", sizes.d_model},
                          {"d_inner", sizes.d_inner}};
  for (const Field& field : fields) {
    if (field.size < 1 || field.size > kMaxSize) {
      builder.table.Fail(absl::StrCat("the tensors show a ", field.name, " of ",
                                      field.size, ", must be in 1..",
                                      kMaxSize));
      return false;
    }
  }
  if (!builder.table.status().ok()) return false;
  for (const Field& field : fields) {
    builder.draft.FromWeights(field.name, field.size);
  }
  return true;
}

void AddFusedRows(int64_t layer, const std::vector<std::string>& names,
                  const StoredTensor& fused, PlanBuilder& builder) {
  const int64_t parts = static_cast<int64_t>(names.size());
  const int64_t rows = fused.shape[0] / parts;
  for (int64_t i = 0; i < parts; ++i) {
    builder.AddToLayer(layer, names[i], Rows(fused, i * rows, (i + 1) * rows));
  }
}

bool InSpec(const PlanInput& input, absl::string_view field) {
  return input.spec.is_object() && input.spec.contains(std::string(field));
}

void AssumeMemory(int64_t rows, absl::string_view why, PlanBuilder& builder) {
  if (!builder.draft.Get("mem_len").is_null()) return;
  builder.draft.FamilyDefault("mem_len", rows);
  builder.Note(
      absl::StrCat("mem_len is not in the checkpoint: ", rows, ", ", why));
}

}  // namespace txl
