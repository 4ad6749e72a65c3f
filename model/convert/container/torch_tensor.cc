#include "model/convert/container/torch_tensor.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/base/bad.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

// func, type, args, state: a tensor of a subclass or with attributes.
constexpr char kFromType[] = "torch._tensor._rebuild_from_type_v2";
constexpr char kTyped[] = "torch._utils._rebuild_tensor_v3";
constexpr size_t kTypedDTypeArg = 6;

absl::StatusOr<std::vector<int64_t>> Numbers(const PickleValue& value,
                                             absl::string_view what) {
  absl::Span<const PickleValue* const> items = value.items();
  // torch.Size((...))
  if (value.kind == PickleKind::kObject && value.args() != nullptr &&
      value.args()->items().size() == 1) {
    items = value.args()->items()[0]->items();
  }
  std::vector<int64_t> numbers;
  for (const PickleValue* item : items) {
    if (item->kind != PickleKind::kInt) {
      return Bad(absl::StrCat("its ", what, " are no numbers"));
    }
    if (numbers.size() == 64) {
      return Bad(absl::StrCat("it has too many ", what));
    }
    numbers.push_back(item->integer);
  }
  return numbers;
}

}  // namespace

bool RebuildsTensor(absl::string_view global) {
  return global == "torch._utils._rebuild_tensor" ||
         global == "torch._utils._rebuild_tensor_v2" || global == kTyped ||
         global == kFromType;
}

bool WrapsTensor(absl::string_view global) {
  return global == "torch._utils._rebuild_parameter" ||
         global == "torch._utils._rebuild_parameter_with_state";
}

absl::StatusOr<std::optional<StoredTensor>> RebuildTensor(
    absl::string_view global, absl::Span<const PickleValue* const> args,
    TorchStorages& storages) {
  if (global == kFromType) {
    if (args.size() < 3 || args[0]->kind != PickleKind::kGlobal ||
        !RebuildsTensor(args[0]->text) || args[0]->text == kFromType) {
      return std::nullopt;
    }
    return RebuildTensor(args[0]->text, args[2]->items(), storages);
  }
  if (args.size() < 4 || (global == kTyped && args.size() <= kTypedDTypeArg)) {
    return Bad("it is rebuilt with too few arguments");
  }
  TXL_ASSIGN_OR_RETURN(const StorageRef ref, ParseStorageRef(*args[0]));
  std::optional<DType> dtype = ref.type->dtype;
  if (global == kTyped) {
    const auto* type = args[kTypedDTypeArg]->kind == PickleKind::kGlobal
                           ? DTypeNamed(args[kTypedDTypeArg]->text)
                           : nullptr;
    dtype = type == nullptr ? std::nullopt : type->dtype;
  }
  if (!dtype.has_value()) return std::nullopt;
  if (args[1]->kind != PickleKind::kInt) return Bad("its offset is no number");
  TXL_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, Numbers(*args[2], "sizes"));
  TXL_ASSIGN_OR_RETURN(std::vector<int64_t> strides,
                       Numbers(*args[3], "strides"));
  TXL_ASSIGN_OR_RETURN(auto storage, storages.Open(ref));
  return Strided(*dtype, std::move(sizes), std::move(strides), args[1]->integer,
                 std::move(storage));
}

}  // namespace txl
