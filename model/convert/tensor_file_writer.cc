#include "model/convert/tensor_file_writer.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/safetensors.h"

namespace txl {
namespace {

using nlohmann::json;

// What the header says of a tensor.
struct Layout {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
};

absl::Status BadTensor(const std::string& name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor ", name, " ", what));
}

absl::StatusOr<Layout> LayoutOf(const std::string& name,
                                const PlannedTensor& tensor) {
  if (name == "__metadata__" || tensor.pieces.empty()) {
    return BadTensor(name, "has no pieces or a reserved name");
  }
  const StoredTensor& first = tensor.pieces[0];
  Layout layout = {first.dtype, first.shape, 0};
  if (tensor.axis < 0 || (tensor.axis >= first.dims() &&
                          (tensor.axis > 0 || tensor.pieces.size() > 1))) {
    return BadTensor(name, "is joined along an axis that it does not have");
  }
  for (size_t i = 1; i < tensor.pieces.size(); ++i) {
    const StoredTensor& piece = tensor.pieces[i];
    std::vector<int64_t> expected = first.shape;
    if (piece.dims() == first.dims()) {
      expected[tensor.axis] = piece.shape[tensor.axis];
    }
    if (piece.dtype != first.dtype || piece.shape != expected) {
      return BadTensor(name, "has pieces that do not fit together");
    }
    int64_t& size = layout.shape[tensor.axis];
    if (__builtin_add_overflow(size, piece.shape[tensor.axis], &size)) {
      return BadTensor(name, "is too large");
    }
  }
  for (const StoredTensor& piece : tensor.pieces) {
    const auto bytes = static_cast<uint64_t>(piece.bytes());
    // A view may repeat elements (strides of 0) without end; weights do not.
    if (bytes > piece.storage->size()) {
      return BadTensor(name, "is larger than what is stored of it");
    }
    if (__builtin_add_overflow(layout.bytes, bytes, &layout.bytes)) {
      return BadTensor(name, "is too large");
    }
  }
  return layout;
}

std::string HeaderText(const std::map<std::string, Layout>& layouts,
                       const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const auto& [name, layout] : layouts) {
    header[name] = {{"dtype", std::string(DTypeName(layout.dtype))},
                    {"shape", layout.shape},
                    {"data_offsets", {offset, offset + layout.bytes}}};
    offset += layout.bytes;
  }
  std::string text =
      header.dump(-1, ' ', false, json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

// The bytes of a piece, every element finite.
absl::StatusOr<std::string> ReadPiece(const std::string& name,
                                      const StoredTensor& piece) {
  TXL_ASSIGN_OR_RETURN(std::string bytes, ReadTensor(piece));
  if (!AllFinite(
          piece.dtype,
          absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()),
                              bytes.size()))) {
    return BadTensor(name, "holds NaN or infinity");
  }
  return bytes;
}

// A file that is removed unless it was closed well.
class OutputFile {
 public:
  explicit OutputFile(std::string path)
      : path_(std::move(path)), file_(std::fopen(path_.c_str(), "wbxe")) {}
  ~OutputFile() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    std::remove(path_.c_str());
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  absl::Status Opened() const {
    return file_ != nullptr ? absl::OkStatus() : Error();
  }

  absl::Status Write(absl::string_view bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size()) {
      return absl::OkStatus();
    }
    return Error();
  }

  absl::Status Close() {
    if (std::fflush(file_) != 0) return Error();
    const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
    if (closed) return absl::OkStatus();
    const absl::Status error = Error();
    std::remove(path_.c_str());
    return error;
  }

 private:
  absl::Status Error() const {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat(path_, ": cannot be written"));
  }

  const std::string path_;
  std::FILE* file_;
};

// Joins along an inner axis: the outer indices take a run of each piece in
// turn.
absl::StatusOr<std::string> JoinInside(const std::string& name,
                                       const PlannedTensor& tensor,
                                       const Layout& layout) {
  int64_t outer = 1;
  for (int64_t i = 0; i < tensor.axis; ++i) outer *= layout.shape[i];
  std::string joined(layout.bytes, '\0');
  if (joined.empty()) return joined;
  const size_t stride = joined.size() / outer;
  size_t column = 0;
  for (const StoredTensor& piece : tensor.pieces) {
    TXL_ASSIGN_OR_RETURN(const std::string bytes, ReadPiece(name, piece));
    const size_t run = bytes.size() / outer;
    for (int64_t i = 0; i < outer; ++i) {
      std::memcpy(joined.data() + i * stride + column, bytes.data() + i * run,
                  run);
    }
    column += run;
  }
  return joined;
}

absl::Status WriteTensor(const std::string& name, const PlannedTensor& tensor,
                         const Layout& layout, OutputFile& file) {
  if (tensor.axis > 0 && tensor.pieces.size() > 1) {
    TXL_ASSIGN_OR_RETURN(const std::string bytes,
                         JoinInside(name, tensor, layout));
    return file.Write(bytes);
  }
  for (const StoredTensor& piece : tensor.pieces) {
    TXL_ASSIGN_OR_RETURN(const std::string bytes, ReadPiece(name, piece));
    TXL_RETURN_IF_ERROR(file.Write(bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteTensorFile(
    const std::string& path,
    const std::map<std::string, PlannedTensor>& tensors,
    const TensorFileOptions& options) {
  std::map<std::string, Layout> layouts;
  uint64_t all = 0;
  for (const auto& [name, tensor] : tensors) {
    TXL_ASSIGN_OR_RETURN(layouts[name], LayoutOf(name, tensor));
    all += layouts[name].bytes;
  }
  const std::string header = HeaderText(layouts, options.metadata);
  const uint64_t length = header.size();
  OutputFile file(path);
  TXL_RETURN_IF_ERROR(file.Opened());
  TXL_RETURN_IF_ERROR(file.Write(absl::string_view(
      reinterpret_cast<const char*>(&length), sizeof(length))));
  TXL_RETURN_IF_ERROR(file.Write(header));
  uint64_t done = 0;
  for (const auto& [name, tensor] : tensors) {
    const Layout& layout = layouts[name];
    TXL_RETURN_IF_ERROR(WriteTensor(name, tensor, layout, file));
    done += layout.bytes;
    if (options.progress) options.progress(name, done, all);
  }
  return file.Close();
}

}  // namespace txl
