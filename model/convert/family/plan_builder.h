#pragma once

// What a family fills while it plans: its tensors, its fields, its plan.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/base/status_macros.h"
#include "model/config/model_config.h"
#include "model/convert/container/native_checkpoint.h"
#include "model/convert/container/stored_tensor.h"
#include "model/convert/family/family.h"

namespace txl {

// The native tensors of one model while a family plans: each is used or
// expressly ignored, and what is left over is an error.

// After the first error every Take gives a view of nothing with the expected
// sizes (0 for any), and Finish says what was wrong: a family takes all and
// checks once. Errors name the path and the tensor's whole place. Refers to the
// checkpoint.
class TensorTable {
 public:
  // The tensors whose place starts with `prefix` ("model_state."), without it.
  // Other tensors of the checkpoint (optimizer state) are not the model's.
  // An entry under the prefix that is not a tensor is an error when `data` is a
  // dictionary with tensors there: a state dict holds tensors only.
  TensorTable(const NativeCheckpoint& checkpoint, absl::string_view prefix);

  bool Has(absl::string_view name) const;
  // Size of dimension `dim` of a tensor, 0 with an error recorded when it is
  // absent or has fewer dimensions. Does not count as use.
  int64_t Dim(absl::string_view name, int64_t dim);
  // Its number of dimensions, 0 with an error recorded when it is absent. Does
  // not count as use.
  int64_t Dims(absl::string_view name);

  // The tensor, used from now on. Expected sizes are checked (-1: any but 0). A
  // view that shows more bytes than its storage has is an error.
  StoredTensor Take(absl::string_view name, std::vector<int64_t> shape);
  // Used and thrown away, when present.
  void Ignore(absl::string_view name);
  void IgnorePrefix(absl::string_view prefix);

  // Names left, sorted; how many numbers "PREFIX0.", "PREFIX1.", ... follow
  // each other without a gap (also "PREFIX0" itself counts).
  std::vector<std::string> Unused() const;
  int64_t Count(absl::string_view prefix) const;

  void Fail(std::string message);
  const absl::Status& status() const { return status_; }
  // status(), or an error naming tensors that were not used.
  absl::Status Finish() const;

 private:
  void CheckEntries(const nlohmann::json* dictionary);
  const StoredTensor* Find(absl::string_view name) const;

  const std::string path_;
  const std::string prefix_;
  std::map<std::string, const StoredTensor*, std::less<>> tensors_;
  std::set<std::string, std::less<>> used_;
  absl::Status status_;
};

// config.json in the making: fields with their origins.

class ConfigDraft {
 public:
  // `spec`: null or an object. Keys that are not fields of config.json are
  // ignored; null counts as absent, but for window and clamp_len, where it
  // means none.
  explicit ConfigDraft(const nlohmann::json& spec);

  // A size or choice that the weights show. A spec that says otherwise is an
  // error, and so is a configuration of the checkpoint that was set before.
  void FromWeights(absl::string_view field, nlohmann::json value);
  // What the checkpoint's own configuration says; a spec goes before it. Does
  // nothing when `value` is discarded or the field was set from the weights.
  void FromCheckpoint(absl::string_view field, nlohmann::json value);
  // The family's default. Does nothing when the field was set before.
  void FamilyDefault(absl::string_view field, nlohmann::json value);

  // The value that holds now: of the spec, or set before; null when none.
  nlohmann::json Get(absl::string_view field) const;
  int64_t Int(absl::string_view field, int64_t fallback) const;

  // Parses all fields as a config.json into plan.config and plan.fields; a
  // field that was not set gets config.json's default, with the family as its
  // origin. Errors: InvalidArgument naming the field, with `origin` (the
  // checkpoint's path) before it.
  absl::Status Finish(absl::string_view origin, ConversionPlan& plan) const;

 private:
  void Set(absl::string_view field, nlohmann::json value, FieldOrigin origin);

  std::map<std::string, PlannedField, std::less<>> fields_;
  absl::Status status_;
};

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

// Where in a checkpoint a model lies: at the root, under "model_state.", under
// "module." of a data-parallel wrapper, ...

// Whether a tensor's dotted place contains `part` at the begin of a component:
// "crit.out_layers." is in "model_state.crit.out_layers.0.bias".
bool HasPart(const NativeCheckpoint& checkpoint, absl::string_view part);

// What stands before `name` in the place of the one tensor that ends with it:
// "" or with a final dot. Errors: InvalidArgument when there is none or more
// than one.
absl::StatusOr<std::string> PlaceBefore(const NativeCheckpoint& checkpoint,
                                        absl::string_view name);

// The object at a dotted place of the data, through the "_modules" of pickled
// modules; null when there is none. It lives as long as `data`.
const nlohmann::json* ObjectAt(const nlohmann::json& data,
                               absl::string_view place);

// Member `key` of an object; discarded when `object` is null or no object, or
// the member is absent or null.
nlohmann::json Member(const nlohmann::json* object, absl::string_view key);

// The sizes of a model's layers, read from its tensors.

struct TrunkSizes {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t d_head = 0;
  int64_t d_model = 0;
  int64_t d_inner = 0;
  int64_t width() const { return heads * d_head; }
};

// Sets n_layer, n_head, d_head, d_model and d_inner from the weights. False,
// with an error in the table, when one is not in 1..2^20: products of a few of
// them fit int64 then.
bool SetTrunkSizes(const TrunkSizes& sizes, PlanBuilder& builder);

// Adds one layer's Q, K and V from rows that stand below each other,
// [3 * width, d_model] or, for biases, [3 * width]. `names`: of the three.
void AddFusedRows(int64_t layer, const std::vector<std::string>& names,
                  const StoredTensor& fused, PlanBuilder& builder);

// Whether the --spec of `input` says something about `field`, null included.
bool InSpec(const PlanInput& input, absl::string_view field);

// mem_len when neither spec nor checkpoint say it, with a line for the reader.
void AssumeMemory(int64_t rows, absl::string_view why, PlanBuilder& builder);

// Whether two names of a checkpoint are one tensor.

// Whether the elements are equal bit for bit, read in bounded pieces. It
// returns ReadTensor's errors.
absl::StatusOr<bool> SameElements(const StoredTensor& a, const StoredTensor& b);

// Whether tensor `own` is tied to `other`, both of `builder.table`. One view of
// one storage is tied, and so is an absent `own` unless `configured` is false.
// For two storages `configured` decides: tied ones must then be equal, anything
// else is an error in the table, and an assumption becomes an oddity. A tied
// `own` counts as used.
bool IsTied(PlanBuilder& builder, const std::string& own,
            const std::string& other, std::optional<bool> configured);

}  // namespace txl
