#include "model/convert/container/pickle_data.h"

#include <utility>

#include "model/base/status_macros.h"
#include "model/convert/container/native_checkpoint.h"
#include "model/convert/container/pickle_machine.h"
#include "model/convert/container/plain_data.h"
#include "model/convert/container/torch_checkpoint.h"

namespace txl {

absl::StatusOr<nlohmann::json> ReadPickleBytes(
    std::shared_ptr<const ByteSource> file) {
  if (LooksLikeTorchFile(*file)) {
    TXL_ASSIGN_OR_RETURN(NativeCheckpoint checkpoint, ReadTorchBytes(file));
    return std::move(checkpoint.data);
  }
  PickleInput input(*file);
  PickleArena arena;
  TXL_ASSIGN_OR_RETURN(const PickleValue* const root, ReadPickle(input, arena));
  TXL_ASSIGN_OR_RETURN(PlainData plain, ToPlainData(*root, file->name(),
                                                    input.position(), nullptr));
  return std::move(plain.data);
}

absl::StatusOr<nlohmann::json> ReadPickleData(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(auto file, OpenFile(path));
  return ReadPickleBytes(std::move(file));
}

}  // namespace txl
