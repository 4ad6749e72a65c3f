#include "model/convert/family/tensor_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/convert/family/places.h"

namespace txl {
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
    Fail(absl::StrCat("entry ", prefix_, other, " is no tensor"));
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
                   " is no part of the model"));
}

}  // namespace txl
