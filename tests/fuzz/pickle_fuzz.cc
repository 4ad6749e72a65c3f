// A pickle with tensors over storages that always exist.

#include <map>
#include <memory>
#include <string>

#include "model/convert/container/pickle_machine.h"
#include "model/convert/container/plain_data.h"
#include "tests/fuzz/fuzz_input.h"

namespace txl {
namespace {

class AnyStorages : public TorchStorages {
 public:
  absl::StatusOr<std::shared_ptr<const ByteSource>> Open(
      const StorageRef& ref) override {
    constexpr size_t kBytes = 1024;
    auto& source = sources_[ref.key];
    if (source == nullptr) {
      source = BytesInMemory(std::string(kBytes, '\1'), ref.key);
    }
    return source;
  }

 private:
  std::map<std::string, std::shared_ptr<const ByteSource>> sources_;
};

void ReadOne(const ByteSource& file) {
  PickleInput input(file);
  PickleArena arena;
  const absl::StatusOr<const PickleValue*> root = ReadPickle(input, arena);
  if (!root.ok()) return;
  AnyStorages storages;
  const absl::StatusOr<PlainData> plain =
      ToPlainData(**root, file.name(), input.position(), &storages);
  if (plain.ok()) UsePlainData(*plain);
}

}  // namespace
}  // namespace txl

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  txl::ReadOne(*txl::FuzzFile(data, bytes));
  return 0;
}
