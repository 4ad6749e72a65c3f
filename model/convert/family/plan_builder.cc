#include "model/convert/family/plan_builder.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "model/base/status_macros.h"
#include "model/config/json_fields.h"
#include "model/config/model_config.h"
#include "model/convert/family/family.h"

namespace txl {
namespace {

using nlohmann::json;

const json* Find(const json& object, absl::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(key));
  return it == object.end() ? nullptr : &*it;
}

}  // namespace

bool HasPart(const NativeCheckpoint& checkpoint, absl::string_view part) {
  const std::string inner = absl::StrCat(".", part);
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (absl::StartsWith(name, part) || absl::StrContains(name, inner)) {
      return true;
    }
  }
  return false;
}

absl::StatusOr<std::string> PlaceBefore(const NativeCheckpoint& checkpoint,
                                        absl::string_view name) {
  const std::string inner = absl::StrCat(".", name);
  const std::string* found = nullptr;
  for (const auto& [place, tensor] : checkpoint.tensors) {
    if (place != name && !absl::EndsWith(place, inner)) continue;
    if (found != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(checkpoint.path, ": holds two models, with tensors ",
                       *found, " and ", place));
    }
    found = &place;
  }
  if (found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(checkpoint.path, ": tensor ", name, " is missing"));
  }
  return found->substr(0, found->size() - name.size());
}

const json* ObjectAt(const json& data, absl::string_view place) {
  const json* here = &data;
  for (const absl::string_view key :
       absl::StrSplit(place, '.', absl::SkipEmpty())) {
    const json* modules = Find(*here, "_modules");
    const json* child = modules == nullptr ? nullptr : Find(*modules, key);
    here = child != nullptr ? child : Find(*here, key);
    if (here == nullptr) return nullptr;
  }
  return here->is_object() ? here : nullptr;
}

json Member(const json* object, absl::string_view key) {
  const json* found = object == nullptr ? nullptr : Find(*object, key);
  if (found == nullptr || found->is_null()) {
    return json(json::value_t::discarded);
  }
  return *found;
}

namespace {

using nlohmann::json;

// Fields for which null says something: no limit.
bool NullIsAValue(absl::string_view field) {
  return field == "window" || field == "clamp_len";
}

// Strings of a checkpoint may be ill-formed UTF-8.
std::string Text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Who contradicts the weights.
absl::string_view Sayer(FieldOrigin origin) {
  switch (origin) {
    case FieldOrigin::kSpec:
      return "the spec says ";
    case FieldOrigin::kCheckpoint:
      return "the checkpoint's configuration says ";
    default:
      return "other tensors show ";
  }
}

}  // namespace

ConfigDraft::ConfigDraft(const json& spec) {
  if (spec.is_null()) return;
  if (!spec.is_object()) {
    status_ = absl::InvalidArgumentError("the spec is not a JSON object");
    return;
  }
  for (const std::string& field : ModelConfigFields()) {
    const auto it = spec.find(field);
    if (it == spec.end() || (it->is_null() && !NullIsAValue(field))) continue;
    Set(field, *it, FieldOrigin::kSpec);
  }
}

void ConfigDraft::Set(absl::string_view field, json value, FieldOrigin origin) {
  fields_[std::string(field)] = {WithWholeNumbers(std::move(value)), origin};
}

void ConfigDraft::FromWeights(absl::string_view field, json value) {
  const auto it = fields_.find(field);
  const bool said =
      it != fields_.end() && it->second.origin != FieldOrigin::kFamily;
  if (said && it->second.value != value && status_.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat(
        "field ", field, ": ", Sayer(it->second.origin), Text(it->second.value),
        ", the weights show ", Text(value)));
  }
  Set(field, std::move(value), FieldOrigin::kWeights);
}

void ConfigDraft::FromCheckpoint(absl::string_view field, json value) {
  if (value.is_discarded()) return;
  const auto it = fields_.find(field);
  if (it != fields_.end() && it->second.origin != FieldOrigin::kFamily) return;
  Set(field, std::move(value), FieldOrigin::kCheckpoint);
}

void ConfigDraft::FamilyDefault(absl::string_view field, json value) {
  if (fields_.find(field) != fields_.end()) return;
  Set(field, std::move(value), FieldOrigin::kFamily);
}

json ConfigDraft::Get(absl::string_view field) const {
  const auto it = fields_.find(field);
  return it == fields_.end() ? json() : it->second.value;
}

int64_t ConfigDraft::Int(absl::string_view field, int64_t fallback) const {
  const json value = Get(field);
  return value.is_number_integer() ? value.get<int64_t>() : fallback;
}

absl::Status ConfigDraft::Finish(absl::string_view origin,
                                 ConversionPlan& plan) const {
  if (!status_.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": ", status_.message()));
  }
  json object = json::object();
  for (const auto& [field, planned] : fields_) object[field] = planned.value;
  TXL_ASSIGN_OR_RETURN(plan.config, ParseModelConfig(Text(object), origin));
  plan.fields.clear();
  const json parsed = json::parse(ModelConfigToJson(plan.config));
  for (const auto& [field, value] : parsed.items()) {
    const auto it = fields_.find(field);
    plan.fields[field] = {
        value, it == fields_.end() ? FieldOrigin::kFamily : it->second.origin};
  }
  return absl::OkStatus();
}

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

namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 22;

std::vector<int64_t> AnyOf(int64_t dims) {
  return std::vector<int64_t>(dims, -1);
}

}  // namespace

absl::StatusOr<bool> SameElements(const StoredTensor& a,
                                  const StoredTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  if (SameView(a, b) || a.numel() == 0) return true;
  const int64_t rows = a.dims() == 0 ? 1 : a.shape[0];
  const int64_t step = std::max<int64_t>(
      kPieceBytes / std::max<int64_t>(a.bytes() / rows, 1), 1);
  for (int64_t begin = 0; begin < rows; begin += step) {
    const int64_t end = std::min(begin + step, rows);
    const bool whole = a.dims() == 0;
    TXL_ASSIGN_OR_RETURN(const std::string left,
                         ReadTensor(whole ? a : Rows(a, begin, end)));
    TXL_ASSIGN_OR_RETURN(const std::string right,
                         ReadTensor(whole ? b : Rows(b, begin, end)));
    if (left != right) return false;
  }
  return true;
}

bool IsTied(PlanBuilder& builder, const std::string& own,
            const std::string& other, std::optional<bool> configured) {
  TensorTable& table = builder.table;
  if (!table.Has(own)) {
    if (!configured.has_value()) {
      builder.Note(absl::StrCat(own, " is absent: taken as tied to ", other));
    }
    return configured.value_or(true);
  }
  if (!table.Has(other)) return false;
  const StoredTensor a = table.Take(own, AnyOf(table.Dims(own)));
  const StoredTensor b = table.Take(other, AnyOf(table.Dims(other)));
  if (!table.status().ok()) return true;
  if (SameView(a, b)) return true;
  if (!configured.value_or(false)) return false;
  const absl::StatusOr<bool> same = SameElements(a, b);
  if (!same.ok()) {
    table.Fail(std::string(same.status().message()));
  } else if (!*same) {
    table.Fail(absl::StrCat("tensors ", own, " and ", other,
                            " differ, but the configuration ties them"));
  } else {
    builder.Note(
        absl::StrCat(own, " is a copy of ", other, ": tied, as configured"));
  }
  return true;
}

namespace {

using nlohmann::json;

// Names that an error lists before it says how many more there are.
constexpr size_t kNamedAtMost = 4;

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat(
      "[",
      absl::StrJoin(shape, ", ",
                    [](std::string* out, int64_t size) {
                      absl::StrAppend(
                          out, size == -1 ? "any" : std::to_string(size));
                    }),
      "]");
}

bool ShapeFits(const std::vector<int64_t>& actual,
               const std::vector<int64_t>& expected) {
  return std::equal(actual.begin(), actual.end(), expected.begin(),
                    expected.end(), [](int64_t size, int64_t wanted) {
                      return wanted == -1 ? size >= 1 : size == wanted;
                    });
}

// A view of nothing with the sizes that a family expects, so that its cutting
// goes on until Finish.
StoredTensor Placeholder(std::vector<int64_t> shape) {
  StoredTensor empty;
  for (int64_t& size : shape) size = std::max<int64_t>(size, 0);
  empty.strides.assign(shape.size(), 0);
  empty.shape = std::move(shape);
  return empty;
}

int64_t StorageBytes(const StoredTensor& tensor) {
  return tensor.storage == nullptr
             ? 0
             : static_cast<int64_t>(tensor.storage->size());
}

}  // namespace

TensorTable::TensorTable(const NativeCheckpoint& checkpoint,
                         absl::string_view prefix)
    : path_(checkpoint.path), prefix_(prefix) {
  for (auto it = checkpoint.tensors.lower_bound(prefix_);
       it != checkpoint.tensors.end() && absl::StartsWith(it->first, prefix);
       ++it) {
    tensors_[it->first.substr(prefix.size())] = &it->second;
  }
  CheckEntries(ObjectAt(checkpoint.data, prefix));
}

void TensorTable::CheckEntries(const json* dictionary) {
  if (dictionary == nullptr || dictionary->contains(kClassKey)) return;
  std::string other;
  bool has_tensor = false;
  for (const auto& [key, value] : dictionary->items()) {
    if (value.is_object() && value.contains(kTensorKey)) {
      has_tensor = true;
    } else if (other.empty()) {
      other = key;
    }
  }
  if (has_tensor && !other.empty()) {
    Fail(absl::StrCat("entry ", prefix_, other, " is not a tensor"));
  }
}

const StoredTensor* TensorTable::Find(absl::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : it->second;
}

bool TensorTable::Has(absl::string_view name) const {
  return Find(name) != nullptr;
}

int64_t TensorTable::Dim(absl::string_view name, int64_t dim) {
  const int64_t dims = Dims(name);
  if (dim >= 0 && dim < dims) return Find(name)->shape[dim];
  Fail(absl::StrCat("tensor ", prefix_, name, " has ", dims,
                    " dimensions, must have more than ", dim));
  return 0;
}

int64_t TensorTable::Dims(absl::string_view name) {
  if (const StoredTensor* tensor = Find(name)) return tensor->dims();
  Fail(absl::StrCat("tensor ", prefix_, name, " is missing"));
  return 0;
}

StoredTensor TensorTable::Take(absl::string_view name,
                               std::vector<int64_t> shape) {
  const StoredTensor* tensor = Find(name);
  if (tensor == nullptr) {
    Fail(absl::StrCat("tensor ", prefix_, name, " is missing"));
  } else if (!ShapeFits(tensor->shape, shape)) {
    Fail(absl::StrCat("tensor ", prefix_, name, " has shape ",
                      ShapeText(tensor->shape), ", must have ",
                      ShapeText(shape)));
  } else if (StorageBytes(*tensor) < tensor->bytes()) {
    // A view that repeats its elements would write more than was stored.
    Fail(absl::StrCat("tensor ", prefix_, name, " of shape ",
                      ShapeText(tensor->shape), " shows more than its ",
                      StorageBytes(*tensor), " bytes"));
  }
  if (!status_.ok()) return Placeholder(std::move(shape));
  used_.emplace(name);
  return *tensor;
}

void TensorTable::Ignore(absl::string_view name) {
  if (Has(name)) used_.emplace(name);
}

void TensorTable::IgnorePrefix(absl::string_view prefix) {
  for (const auto& [name, tensor] : tensors_) {
    if (absl::StartsWith(name, prefix)) used_.insert(name);
  }
}

std::vector<std::string> TensorTable::Unused() const {
  std::vector<std::string> left;
  for (const auto& [name, tensor] : tensors_) {
    if (!used_.contains(name)) left.push_back(name);
  }
  return left;
}

int64_t TensorTable::Count(absl::string_view prefix) const {
  for (int64_t count = 0;; ++count) {
    const std::string name = absl::StrCat(prefix, count);
    const auto it = tensors_.lower_bound(name + ".");
    const bool has_children =
        it != tensors_.end() && absl::StartsWith(it->first, name + ".");
    if (!has_children && !Has(name)) return count;
  }
}

void TensorTable::Fail(std::string message) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(absl::StrCat(path_, ": ", message));
}

absl::Status TensorTable::Finish() const {
  if (!status_.ok()) return status_;
  std::vector<std::string> left = Unused();
  if (left.empty()) return absl::OkStatus();
  const size_t count = left.size();
  left.resize(std::min(count, kNamedAtMost));
  for (std::string& name : left) name = prefix_ + name;
  std::string more;
  if (count > left.size()) {
    more = absl::StrCat(" and ", count - left.size(), " more");
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path_, ": tensor ", absl::StrJoin(left, ", "), more,
                   " is not part of the model"));
}

}  // namespace txl
