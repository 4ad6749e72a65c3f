#pragma once

// Storages that a pickled tensor refers to by a persistent id.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/checkpoint/safetensors.h"
#include "model/convert/container/byte_source.h"
#include "model/convert/container/pickle_value.h"

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

}  // namespace txl
