#pragma once

// safetensors files: 8-byte little-endian header length, JSON header, raw
// row-major data. The reader maps the file and checks every number of the
// header before anything is allocated from it; it is built for hostile files.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace txl {

enum class DType { kF64, kF32, kF16, kBF16, kI64, kI32, kU8 };

int64_t DTypeBytes(DType dtype);
absl::string_view DTypeName(DType dtype);  // "F64", ...

struct TensorInfo {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // byte offsets in the data section, end exclusive
  uint64_t end = 0;
  int64_t numel() const;
};

// One mapped file. Thread-safe; const after Open. Views stay valid as long as
// the reader lives.
class SafetensorsReader {
 public:
  // Errors: NotFound; InvalidArgument naming file and tensor (header longer
  // than the file or than 16 MiB, no JSON, duplicate or non-UTF-8 names,
  // unknown dtype, negative or overflowing shape, offsets that overlap, leave a
  // hole, exceed the file or contradict dtype and shape).
  static absl::StatusOr<std::unique_ptr<SafetensorsReader>> Open(
      const std::string& path);
  ~SafetensorsReader();

  const std::string& path() const { return path_; }
  const std::map<std::string, TensorInfo>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const {
    return metadata_;
  }
  // Raw bytes of a tensor of tensors().
  absl::Span<const uint8_t> Bytes(const TensorInfo& info) const;

 private:
  SafetensorsReader() = default;
  absl::Status ParseHeader();

  std::string path_;
  std::map<std::string, TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
  const uint8_t* map_ = nullptr;
  uint64_t map_bytes_ = 0;
  uint64_t data_begin_ = 0;
};

// What WriteSafetensors writes: `data` holds numel * DTypeBytes bytes.
struct TensorBytes {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  absl::Span<const uint8_t> data;
};

// Writes as OutputFile does.
absl::Status WriteSafetensors(
    const std::string& path, const std::map<std::string, TensorBytes>& tensors,
    const std::map<std::string, std::string>& metadata);

// Whether every element is finite, looked for without a copy. `bytes` holds
// whole elements of `dtype` in the byte order of the machine, at any alignment.
// Integers are always finite.
bool AllFinite(DType dtype, absl::Span<const uint8_t> bytes);

}  // namespace txl
