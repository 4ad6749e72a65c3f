#include "model/convert/container/torch_storage.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "model/convert/container/pickle_text.h"

namespace txl {
namespace {

using Type = TorchElementType;

const Type kTypes[] = {
    {"DoubleStorage", "torch.float64", 8, DType::kF64},
    {"FloatStorage", "torch.float32", 4, DType::kF32},
    {"HalfStorage", "torch.float16", 2, DType::kF16},
    {"BFloat16Storage", "torch.bfloat16", 2, DType::kBF16},
    {"LongStorage", "torch.int64", 8, DType::kI64},
    {"IntStorage", "torch.int32", 4, DType::kI32},
    {"ByteStorage", "torch.uint8", 1, DType::kU8},
    // One byte each, 0 or 1.
    {"BoolStorage", "torch.bool", 1, DType::kU8},
    {"ShortStorage", "torch.int16", 2, std::nullopt},
    {"CharStorage", "torch.int8", 1, std::nullopt},
    {"ComplexFloatStorage", "torch.complex64", 8, std::nullopt},
    {"ComplexDoubleStorage", "torch.complex128", 16, std::nullopt},
    {"QUInt8Storage", "torch.quint8", 1, std::nullopt},
    {"QInt8Storage", "torch.qint8", 1, std::nullopt},
    {"QInt32Storage", "torch.qint32", 4, std::nullopt},
    // Bytes of any type; the tensor names it.
    {"UntypedStorage", "", 1, std::nullopt},
};

absl::StatusOr<int64_t> Size(const PickleValue& value) {
  if (value.kind != PickleKind::kInt || value.integer < 0) {
    return Bad("a storage has a size that is not a count of elements");
  }
  return value.integer;
}

absl::StatusOr<std::string> Key(const PickleValue& value) {
  if (value.kind == PickleKind::kInt) return absl::StrCat(value.integer);
  if (!value.IsText() || value.text.size() > 256) {
    return Bad("a storage has a key that is not a short text");
  }
  return std::string(value.text);
}

absl::StatusOr<std::optional<StorageView>> ParseView(const PickleValue& value,
                                                     int64_t numel) {
  if (value.kind == PickleKind::kNone) return std::nullopt;
  const auto parts = value.items();
  if (parts.size() != 3) return Bad("a storage's view has not three parts");
  StorageView view;
  TXL_ASSIGN_OR_RETURN(view.key, Key(*parts[0]));
  TXL_ASSIGN_OR_RETURN(view.offset, Size(*parts[1]));
  TXL_ASSIGN_OR_RETURN(view.size, Size(*parts[2]));
  if (view.offset > numel || view.size > numel - view.offset) {
    return Bad(absl::StrCat("the view ", Printable(view.key), " of ", view.size,
                            " elements from ", view.offset,
                            " on leaves its storage of ", numel));
  }
  return view;
}

}  // namespace

const Type* StorageTypeNamed(absl::string_view global) {
  if (!absl::StartsWith(global, "torch.")) return nullptr;
  const absl::string_view name = global.substr(global.rfind('.') + 1);
  const auto* found =
      std::find_if(std::begin(kTypes), std::end(kTypes),
                   [&](const Type& t) { return t.name == name; });
  return found == std::end(kTypes) ? nullptr : found;
}

const Type* DTypeNamed(absl::string_view global) {
  const auto* found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& t) {
        return !t.dtype_name.empty() && t.dtype_name == global;
      });
  return found == std::end(kTypes) ? nullptr : found;
}

absl::StatusOr<StorageRef> ParseStorageRef(const PickleValue& persistent) {
  if (persistent.kind != PickleKind::kPersistent ||
      persistent.items().size() != 1) {
    return Bad("its first argument is not a storage");
  }
  const auto id = persistent.items()[0]->items();
  if (id.size() < 5 || id.size() > 6 || !id[0]->IsText() ||
      id[0]->text != "storage" || id[1]->kind != PickleKind::kGlobal) {
    return Bad("its storage has a persistent id of unknown form");
  }
  StorageRef ref;
  ref.type = StorageTypeNamed(id[1]->text);
  if (ref.type == nullptr) {
    return Bad(absl::StrCat("its storage has the unknown type ",
                            Printable(id[1]->text)));
  }
  TXL_ASSIGN_OR_RETURN(ref.key, Key(*id[2]));
  TXL_ASSIGN_OR_RETURN(ref.numel, Size(*id[4]));
  int64_t bytes = 0;
  if (__builtin_mul_overflow(ref.numel, ref.type->bytes, &bytes)) {
    return Bad(absl::StrCat("its storage has ", ref.numel,
                            " elements, more than a file can hold"));
  }
  if (id.size() == 6) {
    TXL_ASSIGN_OR_RETURN(ref.view, ParseView(*id[5], ref.numel));
  }
  return ref;
}

const PickleValue* ModuleClass(const PickleValue& persistent) {
  if (persistent.kind != PickleKind::kPersistent ||
      persistent.items().size() != 1) {
    return nullptr;
  }
  const auto id = persistent.items()[0]->items();
  if (id.size() < 2 || !id[0]->IsText() || id[0]->text != "module") {
    return nullptr;
  }
  return id[1];
}

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
      return Bad(absl::StrCat("its ", what, " are not numbers"));
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
  if (args[1]->kind != PickleKind::kInt)
    return Bad("its offset is not a number");
  TXL_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, Numbers(*args[2], "sizes"));
  TXL_ASSIGN_OR_RETURN(std::vector<int64_t> strides,
                       Numbers(*args[3], "strides"));
  TXL_ASSIGN_OR_RETURN(auto storage, storages.Open(ref));
  return Strided(*dtype, std::move(sizes), std::move(strides), args[1]->integer,
                 std::move(storage));
}

}  // namespace txl
