#include "tests/model/convert/container/tensor_bundle_writer.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/base/crc32c.h"
#include "txl/convert/tensor_bundle.pb.h"

namespace txl {
namespace {

constexpr int kRestartInterval = 16;

int TensorFlowDType(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 1;
    case DType::kF64:
      return 2;
    case DType::kI32:
      return 3;
    case DType::kU8:
      return 4;
    case DType::kI64:
      return 9;
    case DType::kBF16:
      return 14;
    case DType::kF16:
      return 19;
  }
  return 0;
}

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) {
    bytes.push_back(static_cast<char>(value | 0x80));
  }
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

template <typename Word>
std::string Raw(Word word) {
  std::string bytes(sizeof(word), '\0');
  std::memcpy(bytes.data(), &word, sizeof(word));
  return bytes;
}

// One block in the making.
class BlockBuilder {
 public:
  void Add(const std::string& key, const std::string& value) {
    size_t shared = 0;
    if (count_++ % kRestartInterval == 0) {
      restarts_ += Raw(static_cast<uint32_t>(text_.size()));
    } else {
      while (shared < std::min(key.size(), last_.size()) &&
             key[shared] == last_[shared]) {
        ++shared;
      }
    }
    absl::StrAppend(&text_, Varint(shared), Varint(key.size() - shared),
                    Varint(value.size()), key.substr(shared), value);
    last_ = key;
  }

  size_t size() const { return text_.size(); }
  const std::string& last_key() const { return last_; }

  // Appends the block and its trailer to `file`; returns its handle.
  std::string Finish(std::string& file) {
    if (restarts_.empty()) restarts_ = Raw(uint32_t{0});
    const auto count = static_cast<uint32_t>(restarts_.size() / 4);
    std::string block = absl::StrCat(text_, restarts_, Raw(count));
    const std::string handle =
        absl::StrCat(Varint(file.size()), Varint(block.size()));
    block.push_back('\0');  // not compressed
    file += block;
    file += Raw(MaskCrc32c(ExtendCrc32c(0, block.data(), block.size())));
    *this = BlockBuilder();
    return handle;
  }

 private:
  std::string text_;
  std::string restarts_;
  std::string last_;
  int count_ = 0;
};

absl::Status WriteFile(const std::string& path, absl::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file.good() ? absl::OkStatus() : absl::InternalError(path);
}

}  // namespace

std::string SortedTableBytes(const std::map<std::string, std::string>& entries,
                             size_t block_bytes) {
  std::string file;
  BlockBuilder block, index;
  for (const auto& [key, value] : entries) {
    block.Add(key, value);
    if (block.size() < block_bytes) continue;
    const std::string last = block.last_key();
    index.Add(last, block.Finish(file));
  }
  if (block.size() > 0) {
    const std::string last = block.last_key();
    index.Add(last, block.Finish(file));
  }
  const std::string meta = BlockBuilder().Finish(file);
  std::string footer = meta + index.Finish(file);
  footer.resize(40, '\0');
  return file + footer + Raw(uint64_t{0xdb4775248b80fb57});
}

std::string BundleEntryBytes(const BundleEntryFields& fields) {
  convert::BundleEntry entry;
  entry.set_dtype(fields.dtype);
  for (const int64_t size : fields.shape) {
    entry.mutable_shape()->add_dim()->set_size(size);
  }
  entry.set_shard_id(fields.shard_id);
  entry.set_offset(fields.offset);
  entry.set_size(fields.size);
  entry.set_crc32c(fields.masked_crc32c);
  return entry.SerializeAsString();
}

std::string BundleHeaderBytes(int shards, int endianness, int min_consumer) {
  convert::BundleHeader header;
  header.set_num_shards(shards);
  header.set_endianness(endianness);
  header.mutable_version()->set_producer(1);
  header.mutable_version()->set_min_consumer(min_consumer);
  return header.SerializeAsString();
}

absl::Status WriteTensorBundle(
    const std::string& prefix,
    const std::map<std::string, BundleTensor>& tensors) {
  std::map<std::string, std::string> entries = {{"", BundleHeaderBytes(1)}};
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    BundleEntryFields fields;
    fields.dtype = TensorFlowDType(tensor.dtype);
    fields.shape = tensor.shape;
    fields.offset = static_cast<int64_t>(data.size());
    fields.size = static_cast<int64_t>(tensor.bytes.size());
    fields.masked_crc32c =
        MaskCrc32c(ExtendCrc32c(0, tensor.bytes.data(), tensor.bytes.size()));
    entries[name] = BundleEntryBytes(fields);
    data += tensor.bytes;
  }
  const absl::Status written = WriteFile(prefix + ".data-00000-of-00001", data);
  if (!written.ok()) return written;
  return WriteFile(prefix + ".index", SortedTableBytes(entries));
}

}  // namespace txl
