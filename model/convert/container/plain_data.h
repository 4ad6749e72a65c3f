#pragma once

// Turns the values of a pickle into plain data and named tensors.

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/convert/container/pickle_value.h"
#include "model/convert/container/stored_tensor.h"
#include "model/convert/container/torch_storage.h"

namespace txl {

struct PlainData {
  nlohmann::json data;
  std::map<std::string, StoredTensor> tensors;
};

// What native_checkpoint.h says of `data` and `tensors` holds; besides:
// - a global that is a value (a dtype, a function) is the string "module.name",
//   a torch.device the string "cuda:0", bytes that were encoded are decoded;
// - entries of an instance that is a list are under "__items__", those of one
//   that is a dictionary its attributes; a state that is no dictionary is under
//   "__state__";
// - the `_metadata` of a state dict is left out, as are buffers that a
//   state_dict() would not have;
// - a tensor of a type that DType lacks, or any when `storages` is null, is an
//   instance of torch.Tensor;
// - an integer beyond 64 bits is a hexadecimal string; a key of a dictionary
//   that is no text, number or tuple of such is "#INDEX".
// `pickle_bytes` bounds the work: values that share their parts grow when they
// are written out. Errors: InvalidArgument naming `name` and the place.
absl::StatusOr<PlainData> ToPlainData(const PickleValue& root,
                                      const std::string& name,
                                      uint64_t pickle_bytes,
                                      TorchStorages* storages);

}  // namespace txl
