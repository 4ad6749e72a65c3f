#pragma once

// What a container holds, before anyone knows which model it is: named tensors
// and plain data. Nothing in it was executed; nothing of a tensor was read.

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "model/convert/container/stored_tensor.h"

namespace txl {

// Keys of `data` that say what a value was.
inline constexpr char kClassKey[] = "__class__";    // "argparse.Namespace"
inline constexpr char kArgsKey[] = "__args__";      // of the constructor
inline constexpr char kTensorKey[] = "__tensor__";  // dotted name in `tensors`

struct NativeCheckpoint {
  std::string path;  // file or folder, as given
  // "torch zip", "torch legacy", "safetensors", each also with " shards" where
  // an index names several; "npy folder", "tensorflow checkpoint"
  std::string container;

  // By dotted place: the keys from the root joined by "."; list entries by
  // index. Inside a pickled torch module the name that its state_dict() would
  // give ("layers.0.dec_attn.r_net.weight"), with the place of the module
  // before it when the module is not the root.
  std::map<std::string, StoredTensor> tensors;

  // Everything else, as plain data: dictionaries (also OrderedDict, Counter)
  // are objects, with integer keys in decimal; lists, tuples and sets arrays;
  // bytes strings. An instance of a class is an object with kClassKey, its
  // attributes, and kArgsKey where its constructor had arguments. A tensor is
  // {kTensorKey: its name}. A pickled module keeps its attributes and, under
  // "_modules", its children; its parameters and buffers are in `tensors`
  // alone. Null for containers without such data. Strings may be ill-formed
  // UTF-8.
  nlohmann::json data;
};

// Recognises the container at `path` (a file or a folder) by its content and
// reads its table of contents. Folders: npy files with info.json;
// model.safetensors, else the files that model.safetensors.index.json names,
// else pytorch_model.bin, else those of pytorch_model.bin.index.json; a
// TensorFlow checkpoint (a folder with one, or the path of its .index file or
// prefix), mp_rank_XX_model_states.pt shards (their tensors are named
// "rank.XX.PLACE"), or a folder with a single torch or safetensors file. The
// path of an index of shards (*.index.json) stands for the files it names.
// Errors: NotFound; InvalidArgument in one line naming the file and what is
// wrong where.
absl::StatusOr<NativeCheckpoint> OpenCheckpoint(const std::string& path);

}  // namespace txl
