#pragma once

// Storages that a pickled tensor refers to by a persistent id.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/checkpoint/safetensors.h"
#include "model/convert/container/byte_source.h"
#include "model/convert/container/pickle_value.h"
#include "model/convert/container/stored_tensor.h"

namespace txl {

struct TorchElementType {
  absl::string_view name;        // "FloatStorage"
  absl::string_view dtype_name;  // "torch.float32"
  int64_t bytes = 0;
  std::optional<DType> dtype;  // none: not supported
};

// By the name of a storage class ("torch.FloatStorage", also below torch.cuda)
// or of a dtype ("torch.float32"); null when there is no such type.
const TorchElementType* StorageTypeNamed(absl::string_view global);
const TorchElementType* DTypeNamed(absl::string_view global);

// A part of a storage under a name of its own, in elements.
struct StorageView {
  std::string key;
  int64_t offset = 0;
  int64_t size = 0;
};

struct StorageRef {
  const TorchElementType* type = nullptr;
  std::string key;
  int64_t numel = 0;
  std::optional<StorageView> view;
  int64_t bytes() const { return numel * type->bytes; }
};

// Reads ('storage', TYPE, KEY, LOCATION, NUMEL[, VIEW]). Errors:
// InvalidArgument saying what is wrong (another form, an unknown type, a number
// that is negative or too large, a view outside its storage).
absl::StatusOr<StorageRef> ParseStorageRef(const PickleValue& persistent);

// Whether the id is that of a module's class: ('module', CLASS, FILE, TEXT).
// Null when not, else CLASS.
const PickleValue* ModuleClass(const PickleValue& persistent);

// The bytes of storages. Every call with one key gives one object, so that tied
// tensors are known as such.
class TorchStorages {
 public:
  virtual ~TorchStorages() = default;
  // Errors: InvalidArgument naming the storage (absent, of another size).
  virtual absl::StatusOr<std::shared_ptr<const ByteSource>> Open(
      const StorageRef& ref) = 0;
};

// Tensors as torch's pickles rebuild them.

// Whether a call of this global gives a tensor that RebuildTensor knows.
bool RebuildsTensor(absl::string_view global);

// The global's first argument is what it returns: parameters.
bool WrapsTensor(absl::string_view global);

// The tensor; nothing when its elements are of a type that DType lacks.
// Errors: InvalidArgument saying what is wrong (arguments of another form, a
// view outside its storage); those of TorchStorages::Open.
absl::StatusOr<std::optional<StoredTensor>> RebuildTensor(
    absl::string_view global, absl::Span<const PickleValue* const> args,
    TorchStorages& storages);

}  // namespace txl
