#include "model/convert/container/tensor_bundle.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/base/crc32c.h"
#include "model/base/status_macros.h"
#include "model/convert/container/byte_source.h"
#include "model/convert/container/sorted_table.h"
#include "txl/convert/tensor_bundle.pb.h"

namespace txl {
namespace {

using convert::BundleEntry;
using convert::BundleHeader;
using Source = std::shared_ptr<const ByteSource>;

constexpr int kFormatVersion = 1;
constexpr int kMaxShards = 100'000;
// What a TensorFlow 2 object graph is called; it is no variable.
constexpr absl::string_view kObjectGraph = "_CHECKPOINTABLE_OBJECT_GRAPH";

// TensorFlow's DataType numbers.
std::optional<DType> ToDType(int number) {
  switch (number) {
    case 1:
      return DType::kF32;
    case 2:
      return DType::kF64;
    case 3:
      return DType::kI32;
    case 4:
      return DType::kU8;
    case 9:
      return DType::kI64;
    case 14:
      return DType::kBF16;
    case 19:
      return DType::kF16;
    default:
      return std::nullopt;
  }
}

bool IsSliceKey(absl::string_view key) {
  return !key.empty() && key.front() == '\0';
}

// Reads one index.
class BundleIndex {
 public:
  BundleIndex(const ByteSource& index, const OpenBundleShard& open)
      : index_(index), open_(open) {}

  absl::StatusOr<std::map<std::string, StoredTensor>> Read() {
    TXL_ASSIGN_OR_RETURN(entries_, ReadSortedTable(index_));
    TXL_RETURN_IF_ERROR(ReadHeader());
    std::map<std::string, StoredTensor> tensors;
    for (const auto& [key, text] : entries_) {
      if (key.empty() || key == kObjectGraph || IsSliceKey(key)) continue;
      if (std::any_of(key.begin(), key.end(), absl::ascii_iscntrl)) {
        return Bad(key, "has an unprintable name");
      }
      TXL_ASSIGN_OR_RETURN(const BundleEntry entry, ParseEntry(key, text));
      TXL_ASSIGN_OR_RETURN(tensors[key], Tensor(key, entry));
    }
    for (const auto& [key, text] : entries_) {
      if (IsSliceKey(key) && used_slices_.count(key) == 0) {
        return Bad(key, "is a partition of no tensor");
      }
    }
    return tensors;
  }

 private:
  absl::Status Bad(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(index_.name(), ": ", what));
  }
  absl::Status Bad(absl::string_view tensor, absl::string_view what) const {
    return Bad(absl::StrCat("tensor ", absl::CHexEscape(tensor.substr(0, 256)),
                            " ", what));
  }

  absl::Status ReadHeader() {
    BundleHeader header;
    const auto found = entries_.find("");
    if (found == entries_.end() || !header.ParseFromString(found->second)) {
      return Bad("has no header of a TensorFlow checkpoint");
    }
    if (header.endianness() != 0) return Bad("holds big-endian data");
    if (header.version().min_consumer() > kFormatVersion) {
      return Bad("is of a newer format than TensorFlow's checkpoint V2");
    }
    if (header.num_shards() < 1 || header.num_shards() > kMaxShards) {
      return Bad("has a bad number of data files");
    }
    shards_ = header.num_shards();
    return absl::OkStatus();
  }

  absl::StatusOr<BundleEntry> ParseEntry(const std::string& key,
                                         const std::string& text) const {
    BundleEntry entry;
    if (!entry.ParseFromString(text)) {
      return Bad(key, "has an entry that is damaged");
    }
    return entry;
  }

  absl::StatusOr<Source> Shard(int shard) {
    const auto known = open_shards_.find(shard);
    if (known != open_shards_.end()) return known->second;
    TXL_ASSIGN_OR_RETURN(open_shards_[shard], open_(shard, shards_));
    return open_shards_[shard];
  }

  // The bytes of one entry of the data files.
  absl::StatusOr<Source> Bytes(const std::string& key,
                               const std::string& tensor,
                               const BundleEntry& entry) {
    if (entry.shard_id() < 0 || entry.shard_id() >= shards_) {
      return Bad(tensor, "lies in a data file that there is not");
    }
    if (entry.offset() < 0 || entry.size() < 0) {
      return Bad(tensor, "has a negative offset or size");
    }
    TXL_ASSIGN_OR_RETURN(const Source shard, Shard(entry.shard_id()));
    const uint64_t begin = entry.offset(), bytes = entry.size();
    if (begin > shard->size() || bytes > shard->size() - begin) {
      return Bad(tensor, absl::StrCat("ends beyond ", shard->name()));
    }
    std::string name = absl::StrCat(shard->name(), ": tensor ", tensor);
    if (key != tensor) absl::StrAppend(&name, " (a partition)");
    TXL_ASSIGN_OR_RETURN(Source slice,
                         Slice(shard, begin, bytes, std::move(name)));
    return WithCrc32c(std::move(slice), UnmaskCrc32c(entry.crc32c()));
  }

  absl::StatusOr<StoredTensor> Tensor(const std::string& key,
                                      const BundleEntry& entry) {
    const std::optional<DType> dtype = ToDType(entry.dtype());
    if (!dtype.has_value()) {
      return Bad(key, absl::StrCat("has the unsupported dtype ", entry.dtype(),
                                   " (TensorFlow's number)"));
    }
    if (entry.shape().unknown_rank()) return Bad(key, "has no shape");
    std::vector<int64_t> shape;
    for (const auto& dim : entry.shape().dim()) shape.push_back(dim.size());
    Source bytes;
    if (entry.slices().empty()) {
      TXL_ASSIGN_OR_RETURN(bytes, Bytes(key, key, entry));
    } else {
      TXL_ASSIGN_OR_RETURN(bytes, JoinSlices(key, entry, *dtype, shape));
    }
    return RowMajor(*dtype, std::move(shape), std::move(bytes));
  }

  // The entry of one slice, checked to be the rows that it is said to be.
  absl::StatusOr<Source> SliceBytes(const std::string& key,
                                    const std::string& tensor, DType dtype,
                                    const std::vector<int64_t>& shape) {
    const auto found = entries_.find(key);
    if (found == entries_.end() || !used_slices_.insert(key).second) {
      return Bad(tensor, "lacks a partition or lists one twice");
    }
    TXL_ASSIGN_OR_RETURN(const BundleEntry entry,
                         ParseEntry(tensor, found->second));
    std::vector<int64_t> own;
    for (const auto& dim : entry.shape().dim()) own.push_back(dim.size());
    if (ToDType(entry.dtype()) != dtype || own != shape ||
        !entry.slices().empty()) {
      return Bad(tensor, "has a partition of another dtype or shape");
    }
    TXL_ASSIGN_OR_RETURN(Source bytes, Bytes(key, tensor, entry));
    TXL_RETURN_IF_ERROR(RowMajor(dtype, shape, bytes).status());
    return bytes;
  }

  // The slices in the order of their rows, which make up the whole.
  absl::StatusOr<Source> JoinSlices(const std::string& tensor,
                                    const BundleEntry& whole, DType dtype,
                                    std::vector<int64_t> shape) {
    std::map<int64_t, std::pair<int64_t, std::string>> order;  // by first row
    for (const auto& slice : whole.slices()) {
      std::vector<SliceExtent> extents;
      for (const auto& e : slice.extent()) {
        extents.push_back({e.start(), e.has_length() ? e.length() : -1});
      }
      const absl::StatusOr<SliceRows> rows = RowsOfSlice(extents, shape);
      if (!rows.ok()) return Bad(tensor, rows.status().message());
      const auto at = std::make_pair(rows->end, SliceKey(tensor, extents));
      if (rows->begin == rows->end) {
        used_slices_.insert(at.second);
        continue;
      }
      if (!order.emplace(rows->begin, at).second) {
        return Bad(tensor, "has partitions that overlap");
      }
    }
    const int64_t all_rows = shape.empty() ? 0 : shape[0];
    int64_t next = 0;
    std::vector<Source> parts;
    for (const auto& [begin, end_and_key] : order) {
      if (begin != next) break;
      next = end_and_key.first;
      shape[0] = next - begin;
      TXL_ASSIGN_OR_RETURN(
          parts.emplace_back(),
          SliceBytes(end_and_key.second, tensor, dtype, shape));
    }
    if (next != all_rows || parts.size() != order.size()) {
      return Bad(tensor, "has partitions that overlap or leave a gap");
    }
    return Joined(std::move(parts),
                  absl::StrCat(index_.name(), ": tensor ", tensor));
  }

  const ByteSource& index_;
  const OpenBundleShard& open_;
  std::map<std::string, std::string> entries_;
  int shards_ = 0;
  std::map<int, Source> open_shards_;
  std::set<std::string> used_slices_;
};

}  // namespace

absl::StatusOr<std::map<std::string, StoredTensor>> ReadBundleIndex(
    const ByteSource& index, const OpenBundleShard& open) {
  return BundleIndex(index, open).Read();
}

absl::StatusOr<NativeCheckpoint> ReadTensorBundle(const std::string& prefix) {
  TXL_ASSIGN_OR_RETURN(const Source index, OpenFile(prefix + ".index"));
  const OpenBundleShard open = [&](int shard, int shards) {
    return OpenFile(
        absl::StrFormat("%s.data-%05d-of-%05d", prefix, shard, shards));
  };
  NativeCheckpoint checkpoint;
  checkpoint.path = prefix;
  checkpoint.container = "tensorflow checkpoint";
  TXL_ASSIGN_OR_RETURN(checkpoint.tensors, ReadBundleIndex(*index, open));
  return checkpoint;
}

namespace {

// A string that may be followed by more: 0 and 255 are escaped, 0 1 ends it.
void AppendOrdered(absl::string_view text, std::string& code) {
  for (const char c : text) {
    code.push_back(c);
    if (c == '\0') code.push_back('\xff');
    if (c == '\xff') code.push_back('\0');
  }
  code.append("\0\1", 2);
}

// A count: the number of its bytes, then the bytes, highest first.
void AppendOrdered(uint64_t count, std::string& code) {
  std::string bytes;
  for (; count > 0; count >>= 8) {
    bytes.insert(bytes.begin(), static_cast<char>(count & 0xff));
  }
  code.push_back(static_cast<char>(bytes.size()));
  code += bytes;
}

// A signed number in the fewest bytes n whose 7 n bits hold it. Leading ones
// in the first byte (or two) say how many, inverted for negative numbers, so
// that codes sort like numbers.
void AppendOrdered(int64_t value, std::string& code) {
  const auto magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  int bytes = 1;
  while (bytes < 10 && (magnitude >> (7 * bytes - 1)) != 0) ++bytes;
  std::string out(bytes, value < 0 ? '\xff' : '\0');
  for (int i = 0; i < std::min(bytes, 8); ++i) {
    out[bytes - 1 - i] = static_cast<char>(value >> (8 * i));
  }
  // `bytes` leading bits turned: the sign and one for each byte that follows.
  for (int bit = 0; bit < bytes; ++bit) {
    out[bit / 8] = static_cast<char>(out[bit / 8] ^ (0x80 >> (bit % 8)));
  }
  code += out;
}

}  // namespace

std::string SliceKey(absl::string_view name,
                     absl::Span<const SliceExtent> extents) {
  std::string key;
  AppendOrdered(uint64_t{0}, key);  // before every variable's own name
  AppendOrdered(name, key);
  AppendOrdered(uint64_t{extents.size()}, key);
  for (const SliceExtent& extent : extents) {
    AppendOrdered(extent.length < 0 ? int64_t{0} : extent.start, key);
    AppendOrdered(extent.length < 0 ? int64_t{-1} : extent.length, key);
  }
  return key;
}

absl::StatusOr<SliceRows> RowsOfSlice(absl::Span<const SliceExtent> extents,
                                      absl::Span<const int64_t> shape) {
  if (extents.empty() || extents.size() != shape.size()) {
    return absl::InvalidArgumentError(
        "has a partition of another number of dimensions");
  }
  for (size_t i = 1; i < shape.size(); ++i) {
    const SliceExtent& extent = extents[i];
    if (extent.length < 0) continue;
    if (extent.start != 0 || extent.length != shape[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("is cut along dimension ", i,
                       "; only cuts along dimension 0 are supported"));
    }
  }
  const SliceExtent rows = extents[0];
  if (rows.length < 0) return SliceRows{0, shape[0]};
  if (rows.start < 0 || rows.start > shape[0] ||
      rows.length > shape[0] - rows.start) {
    return absl::InvalidArgumentError("has a partition outside its shape");
  }
  return SliceRows{rows.start, rows.start + rows.length};
}

}  // namespace txl
