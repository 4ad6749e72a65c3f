#include "model/convert/container/npy_array.h"

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

constexpr absl::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kPreludeBytes = 8;  // magic and version
constexpr uint32_t kMaxHeaderBytes = 64 << 10;
constexpr size_t kMaxDims = 8;

struct NpyDType {
  absl::string_view name;
  DType dtype;
};
constexpr NpyDType kDTypes[] = {
    {"<f2", DType::kF16}, {"<f4", DType::kF32}, {"<f8", DType::kF64},
    {"<i4", DType::kI32}, {"<i8", DType::kI64}, {"|u1", DType::kU8},
};

// Takes tokens of a Python literal off the front of a text.
class LiteralReader {
 public:
  explicit LiteralReader(absl::string_view text) : rest_(text) {}

  bool Take(absl::string_view token) {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    if (rest_.substr(0, token.size()) != token) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  // 'text' or "text" without escapes.
  std::optional<absl::string_view> TakeString() {
    for (const absl::string_view quote : {"'", "\""}) {
      if (!Take(quote)) continue;
      const size_t end = rest_.find(quote);
      if (end == absl::string_view::npos) return std::nullopt;
      const absl::string_view text = rest_.substr(0, end);
      rest_.remove_prefix(end + 1);
      if (text.find('\\') != absl::string_view::npos) return std::nullopt;
      return text;
    }
    return std::nullopt;
  }

  // A number from 0 on, as Python 3 ("12") or 2 ("12L") writes it.
  std::optional<int64_t> TakeSize() {
    rest_ = absl::StripLeadingAsciiWhitespace(rest_);
    if (rest_.empty() || !absl::ascii_isdigit(rest_[0])) return std::nullopt;
    int64_t size = 0;
    while (!rest_.empty() && absl::ascii_isdigit(rest_[0])) {
      if (__builtin_mul_overflow(size, 10, &size) ||
          __builtin_add_overflow(size, rest_[0] - '0', &size)) {
        return std::nullopt;
      }
      rest_.remove_prefix(1);
    }
    if (!rest_.empty() && rest_[0] == 'L') rest_.remove_prefix(1);
    return size;
  }

  bool AtEnd() { return absl::StripLeadingAsciiWhitespace(rest_).empty(); }

 private:
  absl::string_view rest_;
};

absl::StatusOr<DType> TakeDType(LiteralReader& in) {
  const std::optional<absl::string_view> name = in.TakeString();
  if (!name.has_value()) return Bad("its dtype is not a plain one");
  for (const NpyDType& known : kDTypes) {
    if (known.name == *name) return known.dtype;
  }
  if (name->find('O') != absl::string_view::npos) {
    return Bad("it holds pickled objects");
  }
  if (!name->empty() && name->front() == '>') {
    return Bad("it holds big-endian numbers");
  }
  return Bad(absl::StrCat("its dtype ", absl::CHexEscape(name->substr(0, 32)),
                          " is not supported"));
}

// (), (3,), (3, 4) or (3, 4,)
absl::StatusOr<std::vector<int64_t>> TakeShape(LiteralReader& in) {
  std::vector<int64_t> shape;
  if (!in.Take("(")) return Bad("its shape is not a tuple");
  while (!in.Take(")")) {
    const std::optional<int64_t> size = in.TakeSize();
    if (!size.has_value()) return Bad("its shape has a bad size");
    shape.push_back(*size);
    if (shape.size() > kMaxDims) return Bad("it has more than 8 dimensions");
    const bool comma = in.Take(",");
    if (!comma && in.Take(")") && shape.size() > 1) break;
    if (!comma) return Bad("its shape is not a tuple");
  }
  return shape;
}

template <typename Word>
absl::StatusOr<uint32_t> ReadLength(const ByteSource& file) {
  Word length = 0;
  TXL_RETURN_IF_ERROR(file.Read(
      kPreludeBytes,
      absl::MakeSpan(reinterpret_cast<uint8_t*>(&length), sizeof(length))));
  return length;
}

// Element strides of an array whose first index runs fastest. They may only
// wrap around where the array has no element.
std::vector<int64_t> FortranStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides;
  uint64_t stride = 1;
  for (const int64_t size : shape) {
    strides.push_back(static_cast<int64_t>(stride));
    stride *= static_cast<uint64_t>(size);
  }
  return strides;
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text) {
  LiteralReader in(text);
  std::optional<DType> dtype;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
  if (!in.Take("{")) return Bad("its header is not a dictionary");
  while (!in.Take("}")) {
    const std::optional<absl::string_view> key = in.TakeString();
    if (!key.has_value() || !in.Take(":")) {
      return Bad("its header is not a dictionary");
    }
    if (*key == "descr" && !dtype.has_value()) {
      TXL_ASSIGN_OR_RETURN(dtype, TakeDType(in));
    } else if (*key == "fortran_order" && !fortran_order.has_value()) {
      if (in.Take("True")) {
        fortran_order = true;
      } else if (in.Take("False")) {
        fortran_order = false;
      } else {
        return Bad("its fortran_order is neither True nor False");
      }
    } else if (*key == "shape" && !shape.has_value()) {
      TXL_ASSIGN_OR_RETURN(shape, TakeShape(in));
    } else {
      return Bad("its header has an unknown or repeated key");
    }
    if (in.Take(",")) continue;
    if (in.Take("}")) break;
    return Bad("its header is not a dictionary");
  }
  if (!in.AtEnd()) return Bad("its header goes on after the dictionary");
  if (!dtype.has_value() || !fortran_order.has_value() || !shape.has_value()) {
    return Bad("its header lacks descr, fortran_order or shape");
  }
  return NpyHeader{*dtype, *std::move(shape), *fortran_order};
}

bool LooksLikeNpy(const ByteSource& file) {
  uint8_t start[kMagic.size()];
  return file.size() >= kPreludeBytes &&
         file.Read(0, absl::MakeSpan(start)).ok() &&
         std::memcmp(start, kMagic.data(), kMagic.size()) == 0;
}

absl::StatusOr<StoredTensor> ReadNpy(std::shared_ptr<const ByteSource> file) {
  const auto named = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(file->name(), ": ", what));
  };
  if (!LooksLikeNpy(*file)) return named("is not an npy file");
  uint8_t major = 0;
  TXL_RETURN_IF_ERROR(file->Read(kMagic.size(), absl::MakeSpan(&major, 1)));
  if (major < 1 || major > 3) return named("is of an unknown npy version");
  const uint64_t length_bytes = major == 1 ? 2 : 4;
  if (file->size() < kPreludeBytes + length_bytes) return named("is cut off");
  TXL_ASSIGN_OR_RETURN(
      const uint32_t length,
      major == 1 ? ReadLength<uint16_t>(*file) : ReadLength<uint32_t>(*file));
  const uint64_t begin = kPreludeBytes + length_bytes;
  if (length > kMaxHeaderBytes || length > file->size() - begin) {
    return named("has a header longer than the file or than 64 KiB");
  }
  std::string text(length, '\0');
  TXL_RETURN_IF_ERROR(file->Read(
      begin, absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), length)));
  absl::StatusOr<NpyHeader> header = ParseNpyHeader(text);
  if (!header.ok()) return named(header.status().message());
  const uint64_t data = begin + length;
  TXL_ASSIGN_OR_RETURN(auto storage,
                       Slice(file, data, file->size() - data, file->name()));
  // Checks the size for either order: the number of elements is the same.
  TXL_ASSIGN_OR_RETURN(StoredTensor tensor,
                       RowMajor(header->dtype, header->shape, storage));
  if (header->fortran_order) tensor.strides = FortranStrides(header->shape);
  return tensor;
}

}  // namespace txl
