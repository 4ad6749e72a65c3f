#include "model/checkpoint/safetensors.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "model/config/json_fields.h"
#include "program/output_file.h"

namespace txl {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 16 << 20;
constexpr size_t kMaxTensors = 65'536;
constexpr size_t kMaxRank = 8;
constexpr size_t kMaxNameBytes = 256;
constexpr int kHeaderDepth = 4;

struct DTypeEntry {
  DType dtype;
  absl::string_view name;
  int64_t bytes;
};
constexpr DTypeEntry kDTypes[] = {
    {DType::kF64, "F64", 8},   {DType::kF32, "F32", 4}, {DType::kF16, "F16", 2},
    {DType::kBF16, "BF16", 2}, {DType::kI64, "I64", 8}, {DType::kI32, "I32", 4},
    {DType::kU8, "U8", 1},
};

absl::Status BadTensor(const std::string& path, const std::string& name,
                       absl::string_view what) {
  return Bad(path, absl::StrCat("tensor ", name, " ", what));
}

// Names go into messages and logs: short, one line.
bool IsPlainName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::none_of(name.begin(), name.end(), absl::ascii_iscntrl);
}

// "shape" of a header entry; the product with the element size fits uint64.
absl::StatusOr<std::vector<int64_t>> ParseShape(const json& value,
                                                int64_t element_bytes) {
  if (!value.is_array() || value.size() > kMaxRank) {
    return absl::InvalidArgumentError("has no list of at most 8 sizes");
  }
  std::vector<int64_t> shape;
  int64_t bytes = element_bytes;
  for (const json& size : value) {
    if (!size.is_number_integer() || size.get<int64_t>() < 0 ||
        (size.is_number_unsigned() &&
         size.get<uint64_t>() >
             static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))) {
      return absl::InvalidArgumentError("has a bad size in its shape");
    }
    shape.push_back(size.get<int64_t>());
    if (__builtin_mul_overflow(bytes, shape.back(), &bytes)) {
      return absl::InvalidArgumentError("has a shape that overflows");
    }
  }
  return shape;
}

absl::StatusOr<TensorInfo> ParseEntry(const json& entry) {
  if (!entry.is_object() || !entry.contains("dtype") ||
      !entry.contains("shape") || !entry.contains("data_offsets") ||
      !entry["dtype"].is_string()) {
    return absl::InvalidArgumentError("lacks dtype, shape or data_offsets");
  }
  TensorInfo info;
  const std::string dtype = entry["dtype"].get<std::string>();
  const auto* known =
      std::find_if(std::begin(kDTypes), std::end(kDTypes),
                   [&](const DTypeEntry& e) { return e.name == dtype; });
  if (known == std::end(kDTypes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has the unsupported dtype ", absl::CHexEscape(dtype.substr(0, 32))));
  }
  info.dtype = known->dtype;
  TXL_ASSIGN_OR_RETURN(info.shape, ParseShape(entry["shape"], known->bytes));
  const json& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 ||
      !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
    return absl::InvalidArgumentError("has bad data_offsets");
  }
  info.begin = offsets[0].get<uint64_t>();
  info.end = offsets[1].get<uint64_t>();
  return info;
}

// Sorted by offset the tensors must fill the data section without hole or
// overlap.
absl::Status CheckLayout(const std::string& path,
                         const std::map<std::string, TensorInfo>& tensors,
                         uint64_t data_bytes) {
  std::vector<const std::pair<const std::string, TensorInfo>*> order;
  for (const auto& entry : tensors) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::tie(a->second.begin, a->second.end) <
           std::tie(b->second.begin, b->second.end);
  });
  uint64_t next = 0;
  for (const auto* entry : order) {
    const TensorInfo& info = entry->second;
    if (info.begin != next || info.end < info.begin || info.end > data_bytes) {
      return BadTensor(path, entry->first,
                       "overlaps, leaves a hole or lies beyond the file");
    }
    const uint64_t expected =
        static_cast<uint64_t>(info.numel() * DTypeBytes(info.dtype));
    if (info.end - info.begin != expected) {
      return BadTensor(path, entry->first,
                       "has offsets that contradict its dtype and shape");
    }
    next = info.end;
  }
  if (next != data_bytes) return Bad(path, "has data that no tensor names");
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, std::string>> ParseMetadata(
    const std::string& path, const json& value) {
  std::map<std::string, std::string> metadata;
  if (!value.is_object()) return Bad(path, "__metadata__ is not an object");
  for (const auto& [name, text] : value.items()) {
    if (!text.is_string()) return Bad(path, "__metadata__ holds a non-string");
    metadata[name] = text.get<std::string>();
  }
  return metadata;
}

}  // namespace

int64_t DTypeBytes(DType dtype) {
  for (const DTypeEntry& e : kDTypes) {
    if (e.dtype == dtype) return e.bytes;
  }
  return 0;
}

absl::string_view DTypeName(DType dtype) {
  for (const DTypeEntry& e : kDTypes) {
    if (e.dtype == dtype) return e.name;
  }
  return "?";
}

int64_t TensorInfo::numel() const {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

absl::StatusOr<std::unique_ptr<SafetensorsReader>> SafetensorsReader::Open(
    const std::string& path) {
  TXL_ASSIGN_OR_RETURN(const RegularFile file, RegularFile::Open(path));
  if (file.bytes() < 8) return Bad(path, "is too short for a header");
  const auto bytes = static_cast<uint64_t>(file.bytes());
  void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.fd(), 0);
  if (map == MAP_FAILED) {
    return Bad(path, absl::StrCat("cannot be mapped: ", std::strerror(errno)));
  }
  auto reader = std::unique_ptr<SafetensorsReader>(new SafetensorsReader());
  reader->path_ = path;
  reader->map_ = static_cast<const uint8_t*>(map);
  reader->map_bytes_ = bytes;
  TXL_RETURN_IF_ERROR(reader->ParseHeader());
  return reader;
}

absl::Status SafetensorsReader::ParseHeader() {
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, map_, sizeof(header_bytes));
  if (header_bytes > map_bytes_ - 8 || header_bytes > kMaxHeaderBytes) {
    return Bad(path_, "has a header longer than the file or than 16 MiB");
  }
  data_begin_ = 8 + header_bytes;
  const absl::string_view text(reinterpret_cast<const char*>(map_ + 8),
                               header_bytes);
  if (text.empty() || text[0] != '{') {
    return Bad(path_, "has a header that is not a JSON object");
  }
  TXL_ASSIGN_OR_RETURN(
      const json header,
      ParseJsonObject(text, absl::StrCat(path_, ": header"), kHeaderDepth));
  if (header.size() > kMaxTensors) return Bad(path_, "has too many tensors");
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      TXL_ASSIGN_OR_RETURN(metadata_, ParseMetadata(path_, entry));
      continue;
    }
    if (!IsPlainName(name)) {
      return BadTensor(path_, absl::CHexEscape(name.substr(0, 64)),
                       "has an empty, long or unprintable name");
    }
    absl::StatusOr<TensorInfo> info = ParseEntry(entry);
    if (!info.ok()) return BadTensor(path_, name, info.status().message());
    tensors_[name] = *std::move(info);
  }
  return CheckLayout(path_, tensors_, map_bytes_ - data_begin_);
}

SafetensorsReader::~SafetensorsReader() {
  if (map_ != nullptr) ::munmap(const_cast<uint8_t*>(map_), map_bytes_);
}

absl::Span<const uint8_t> SafetensorsReader::Bytes(
    const TensorInfo& info) const {
  return absl::MakeConstSpan(map_ + data_begin_ + info.begin,
                             info.end - info.begin);
}

namespace {

using nlohmann::json;

// The header, filled up with spaces so that the data starts aligned.
absl::StatusOr<std::string> Header(
    const std::string& path, const std::map<std::string, TensorBytes>& tensors,
    const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const TensorInfo info = {tensor.dtype, tensor.shape, 0, 0};
    const auto bytes =
        static_cast<uint64_t>(info.numel() * DTypeBytes(tensor.dtype));
    if (name == "__metadata__" || bytes != tensor.data.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor ", name, " has ", tensor.data.size(),
                       " bytes, its shape ", bytes, ", or a reserved name"));
    }
    header[name] = {{"dtype", std::string(DTypeName(tensor.dtype))},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text =
      header.dump(-1, ' ', false, json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

absl::Status WriteSafetensors(
    const std::string& path, const std::map<std::string, TensorBytes>& tensors,
    const std::map<std::string, std::string>& metadata) {
  TXL_ASSIGN_OR_RETURN(const std::string header,
                       Header(path, tensors, metadata));
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file,
                       OutputFile::Open(path));
  const auto put = [&file](const void* data, size_t bytes) {
    return file->Write({static_cast<const char*>(data), bytes});
  };
  const uint64_t length = header.size();
  TXL_RETURN_IF_ERROR(put(&length, sizeof(length)));
  TXL_RETURN_IF_ERROR(file->Write(header));
  for (const auto& [name, tensor] : tensors) {
    TXL_RETURN_IF_ERROR(put(tensor.data.data(), tensor.data.size()));
  }
  return file->Finish();
}

namespace {

// In every IEEE format NaN and infinity are the values whose exponent has all
// bits set, so that no arithmetic is needed.
template <typename Word>
bool NoWordHasAllBits(absl::Span<const uint8_t> bytes, Word exponent) {
  bool found = false;
  for (size_t i = 0; i + sizeof(Word) <= bytes.size(); i += sizeof(Word)) {
    Word word = 0;
    std::memcpy(&word, bytes.data() + i, sizeof(word));
    found |= (word & exponent) == exponent;
  }
  return !found;
}

}  // namespace

bool AllFinite(DType dtype, absl::Span<const uint8_t> bytes) {
  switch (dtype) {
    case DType::kF64:
      return NoWordHasAllBits<uint64_t>(bytes, 0x7ff0'0000'0000'0000);
    case DType::kF32:
      return NoWordHasAllBits<uint32_t>(bytes, 0x7f80'0000);
    case DType::kF16:
      return NoWordHasAllBits<uint16_t>(bytes, 0x7c00);
    case DType::kBF16:
      return NoWordHasAllBits<uint16_t>(bytes, 0x7f80);
    case DType::kI64:
    case DType::kI32:
    case DType::kU8:
      return true;
  }
  return true;
}

}  // namespace txl
