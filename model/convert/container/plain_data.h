#pragma once

// Turns the values of a pickle into plain data and named tensors.

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
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
//   that is a dictionary its attributes; a state that is not a dictionary is
//   under "__state__";
// - the `_metadata` of a state dict is left out, as are buffers that a
//   state_dict() would not have;
// - a tensor of a type that DType lacks, or any when `storages` is null, is an
//   instance of torch.Tensor;
// - an integer beyond 64 bits is a hexadecimal string; a key of a dictionary
//   that is not a text, number or tuple of such is "#INDEX".
// `pickle_bytes` bounds the work: values that share their parts grow when they
// are written out. Errors: InvalidArgument naming `name` and the place.
absl::StatusOr<PlainData> ToPlainData(const PickleValue& root,
                                      const std::string& name,
                                      uint64_t pickle_bytes,
                                      TorchStorages* storages);

// The walk behind ToPlainData.

using nlohmann::json;

// Errors of all: as ToPlainData.
class PlainDataWriter {
 public:
  // `budget`: bytes of plain data, roughly. `storages` may be null.
  PlainDataWriter(std::string name, uint64_t budget, TorchStorages* storages)
      : name_(std::move(name)), budget_(budget), storages_(storages) {}

  absl::StatusOr<json> Write(const PickleValue& value);
  std::map<std::string, StoredTensor> TakeTensors() && {
    return std::move(tensors_);
  }

 private:
  using Values = absl::Span<const PickleValue* const>;

  // What an object is: its class and the arguments of its constructor.
  struct Construction {
    absl::string_view global;  // "" when the class is not a global
    Values args;
  };
  static Construction ConstructionOf(const PickleValue& object);
  static std::string KeyText(const PickleValue& key, size_t index);

  absl::Status Bad(absl::string_view what) const;
  absl::Status Spend(size_t bytes);
  absl::StatusOr<json> WriteKind(const PickleValue& value);
  absl::StatusOr<json> WriteAt(absl::string_view key, const PickleValue& value);
  absl::Status AppendItems(Values items, json& list);
  absl::Status AddPairs(Values pairs, json& object);

  absl::StatusOr<json> WriteObject(const PickleValue& object);
  // Keys and values of a dictionary, also of one that a call makes of another
  // or of a list of pairs.
  absl::StatusOr<std::vector<const PickleValue*>> EntriesOf(
      const PickleValue& dict);
  absl::StatusOr<json> WriteDict(const PickleValue& object);
  absl::StatusOr<json> WriteSequence(const PickleValue& object, Values args);
  absl::StatusOr<json> WriteBytes(Values args);
  absl::StatusOr<json> WriteTensor(absl::string_view global, Values args);
  absl::StatusOr<json> WriteInstance(const PickleValue& object,
                                     const Construction& made);
  absl::Status AddState(const PickleValue& state, json& object);
  // A module's parameters and buffers, and its other attributes.
  absl::Status AddModule(const PickleValue& state, json& object);
  absl::Status AddModuleTensors(const PickleValue& tensors,
                                const PickleValue* left_out);

  const std::string name_;
  uint64_t budget_;
  TorchStorages* const storages_;
  std::string place_;
  int depth_ = 0;
  std::map<std::string, StoredTensor> tensors_;
};

}  // namespace txl
