#include "model/convert/container/stored_tensor.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace txl {
namespace {

constexpr size_t kMaxViewDims = 8;
// Bound of a view that repeats elements, as torch's expand() makes it: a buffer
// that somebody saved so is small, a file that asks for terabytes is hostile.
constexpr int64_t kMaxRepeatedBytes = int64_t{64} << 20;

std::string Sizes(const std::vector<int64_t>& sizes) {
  return absl::StrCat("[", absl::StrJoin(sizes, ", "), "]");
}

// The product in bytes fits int64 even when sizes of 0 are left out, so that
// strides and views can be computed without looking again.
absl::Status CheckShape(DType dtype, const std::vector<int64_t>& shape,
                        const ByteSource& storage) {
  if (shape.size() > kMaxViewDims) {
    return Bad(storage, "a tensor has more than 8 dimensions");
  }
  int64_t bytes = DTypeBytes(dtype);
  for (const int64_t size : shape) {
    if (size < 0) {
      return Bad(storage, absl::StrCat("a tensor has the negative size in ",
                                       Sizes(shape)));
    }
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes)) {
      return Bad(storage,
                 absl::StrCat("a tensor of shape ", Sizes(shape),
                              " has more bytes than a number can hold"));
    }
  }
  return absl::OkStatus();
}

// Index of the last element of a view without negative numbers; -1: overflow.
int64_t LastElement(const StoredTensor& t) {
  int64_t last = t.offset;
  for (size_t i = 0; i < t.shape.size(); ++i) {
    int64_t extent = 0;
    if (__builtin_mul_overflow(t.shape[i] - 1, t.strides[i], &extent) ||
        __builtin_add_overflow(last, extent, &last)) {
      return -1;
    }
  }
  return last;
}

}  // namespace

int64_t StoredTensor::numel() const {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

bool SameView(const StoredTensor& a, const StoredTensor& b) {
  if (a.storage != b.storage || a.dtype != b.dtype || a.offset != b.offset ||
      a.shape != b.shape) {
    return false;
  }
  for (size_t i = 0; i < a.shape.size(); ++i) {
    if (a.shape[i] > 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

absl::StatusOr<StoredTensor> RowMajor(DType dtype, std::vector<int64_t> shape,
                                      std::shared_ptr<const ByteSource> bytes) {
  if (absl::Status good = CheckShape(dtype, shape, *bytes); !good.ok()) {
    return good;
  }
  StoredTensor t;
  t.dtype = dtype;
  t.shape = std::move(shape);
  t.strides.resize(t.shape.size());
  int64_t stride = 1;
  for (size_t i = t.shape.size(); i-- > 0;) {
    t.strides[i] = stride;
    stride *= std::max<int64_t>(t.shape[i], 1);
  }
  if (static_cast<uint64_t>(t.bytes()) != bytes->size()) {
    return Bad(*bytes, absl::StrCat("has ", bytes->size(), " bytes, but ",
                                    DTypeName(dtype), " ", Sizes(t.shape),
                                    " needs ", t.bytes()));
  }
  t.storage = std::move(bytes);
  return t;
}

absl::StatusOr<StoredTensor> Strided(DType dtype, std::vector<int64_t> shape,
                                     std::vector<int64_t> strides,
                                     int64_t offset,
                                     std::shared_ptr<const ByteSource> bytes) {
  if (absl::Status good = CheckShape(dtype, shape, *bytes); !good.ok()) {
    return good;
  }
  if (strides.size() != shape.size()) {
    return Bad(*bytes, absl::StrCat("a tensor has the sizes ", Sizes(shape),
                                    " but the strides ", Sizes(strides)));
  }
  if (offset < 0) {
    return Bad(*bytes,
               absl::StrCat("a tensor has the negative offset ", offset));
  }
  for (const int64_t stride : strides) {
    if (stride < 0) {
      return Bad(*bytes, absl::StrCat("a tensor has a negative stride in ",
                                      Sizes(strides)));
    }
  }
  StoredTensor t;
  t.dtype = dtype;
  t.shape = std::move(shape);
  t.strides = std::move(strides);
  t.offset = offset;
  // A stride that is never taken says nothing and may be any number.
  const bool empty = t.numel() == 0;
  for (size_t i = 0; i < t.shape.size(); ++i) {
    if (empty || t.shape[i] == 1) t.strides[i] = 0;
  }
  const int64_t elements =
      static_cast<int64_t>(bytes->size()) / DTypeBytes(dtype);
  const int64_t last = empty ? offset - 1 : LastElement(t);
  if ((!empty && last < 0) || last >= elements) {
    return Bad(*bytes,
               absl::StrCat("a tensor with offset ", offset, ", sizes ",
                            Sizes(t.shape), " and strides ", Sizes(t.strides),
                            " leaves its storage of ", elements, " elements"));
  }
  t.storage = std::move(bytes);
  return t;
}

StoredTensor Rows(const StoredTensor& t, int64_t begin, int64_t end) {
  StoredTensor view = t;
  view.shape[0] = end - begin;
  view.offset += begin * t.strides[0];
  return view;
}

StoredTensor Columns(const StoredTensor& t, int64_t begin, int64_t end) {
  return Transposed(Rows(Transposed(t), begin, end));
}

StoredTensor Transposed(const StoredTensor& t) {
  StoredTensor view = t;
  std::swap(view.shape[0], view.shape[1]);
  std::swap(view.strides[0], view.strides[1]);
  return view;
}

StoredTensor FlippedRows(const StoredTensor& t) {
  StoredTensor view = t;
  if (t.shape[0] > 1) {
    view.offset += (t.shape[0] - 1) * t.strides[0];
    view.strides[0] = -t.strides[0];
  }
  return view;
}

StoredTensor At(const StoredTensor& t, int64_t index) {
  return Squeezed(Rows(t, index, index + 1), 0);
}

StoredTensor Squeezed(const StoredTensor& t, int64_t dim) {
  StoredTensor view = t;
  view.shape.erase(view.shape.begin() + dim);
  view.strides.erase(view.strides.begin() + dim);
  return view;
}

absl::StatusOr<std::string> ReadTensor(const StoredTensor& t) {
  if (t.bytes() > kMaxRepeatedBytes &&
      static_cast<uint64_t>(t.bytes()) > t.storage->size()) {
    return Bad(*t.storage, absl::StrCat("a tensor of ", Sizes(t.shape),
                                        " repeats the storage's ",
                                        t.storage->size(), " bytes"));
  }
  std::string out(static_cast<size_t>(t.bytes()), '\0');
  if (out.empty()) return out;
  const absl::Status read = ReadStrided(
      *t.storage, {DTypeBytes(t.dtype), t.shape, t.strides, t.offset},
      out.data());
  if (!read.ok()) return read;
  return out;
}

namespace {

constexpr int64_t kPieceBytes = 64 << 20;
// A tile of both sides fits the first-level cache even where a power of two as
// stride maps all its rows to few cache sets.
constexpr int64_t kTile = 16;

// A dimension with its distances in elements.
struct Dim {
  int64_t size = 1;
  int64_t from = 0;
  int64_t to = 0;
};

// Drops dimensions of size 1 and joins neighbours where both sides run on.
std::vector<Dim> JoinedDims(const StridedView& t) {
  std::vector<Dim> dims;  // last dimension first
  int64_t to = 1;
  for (size_t i = t.shape.size(); i-- > 0;) {
    const Dim dim = {t.shape[i], t.strides[i], to};
    to *= dim.size;
    if (dim.size == 1) continue;
    if (!dims.empty() && dim.from == dims.back().from * dims.back().size) {
      dims.back().size *= dim.size;
    } else {
      dims.push_back(dim);
    }
  }
  std::reverse(dims.begin(), dims.end());
  return dims;
}

template <typename T>
void CopyPlane(const Dim& rows, const Dim& columns, const T* from, T* to) {
  if (columns.from == 1 && columns.to == 1) {
    for (int64_t r = 0; r < rows.size; ++r) {
      std::memcpy(to + r * rows.to, from + r * rows.from,
                  static_cast<size_t>(columns.size) * sizeof(T));
    }
    return;
  }
  for (int64_t r0 = 0; r0 < rows.size; r0 += kTile) {
    const int64_t r1 = std::min(r0 + kTile, rows.size);
    for (int64_t c0 = 0; c0 < columns.size; c0 += kTile) {
      const int64_t c1 = std::min(c0 + kTile, columns.size);
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = c0; c < c1; ++c) {
          to[r * rows.to + c * columns.to] =
              from[r * rows.from + c * columns.from];
        }
      }
    }
  }
}

// REQUIRES: at least 2 dimensions.
template <typename T>
void CopyDims(absl::Span<const Dim> dims, const T* from, T* to) {
  if (dims.size() == 2) return CopyPlane(dims[0], dims[1], from, to);
  for (int64_t i = 0; i < dims[0].size; ++i) {
    CopyDims(dims.subspan(1), from + i * dims[0].from, to + i * dims[0].to);
  }
}

template <typename T>
void CopyElements(absl::Span<const Dim> dims, const void* from, void* to) {
  CopyDims(dims, static_cast<const T*>(from), static_cast<T*>(to));
}

// The two dimensions that run fastest, one on each side, come last: the plane
// that is worth tiling.
std::vector<Dim> PlaneLast(std::vector<Dim> dims) {
  while (dims.size() < 2) dims.insert(dims.begin(), Dim());
  const auto slower_from = [](const Dim& a, const Dim& b) {
    return std::abs(a.from) > std::abs(b.from);
  };
  const auto fastest =
      std::max_element(dims.begin(), dims.end() - 1, slower_from);
  std::rotate(fastest, fastest + 1, dims.end() - 1);
  return dims;
}

// Elements [first, last] that a view starting at `begin` shows.
struct Extent {
  int64_t first = 0;
  int64_t last = 0;
};
Extent ExtentOf(absl::Span<const Dim> dims, int64_t begin) {
  Extent extent = {begin, begin};
  for (const Dim& dim : dims) {
    const int64_t reach = (dim.size - 1) * dim.from;
    (reach < 0 ? extent.first : extent.last) += reach;
  }
  return extent;
}

void CopyPiece(const std::vector<Dim>& dims, int64_t element_bytes,
               const uint8_t* from, char* to) {
  const std::vector<Dim> ordered = PlaneLast(dims);
  switch (element_bytes) {
    case 1:
      return CopyElements<uint8_t>(ordered, from, to);
    case 2:
      return CopyElements<uint16_t>(ordered, from, to);
    case 4:
      return CopyElements<uint32_t>(ordered, from, to);
    default:
      return CopyElements<uint64_t>(ordered, from, to);
  }
}

absl::Status ReadElements(const ByteSource& storage, int64_t element_bytes,
                          const Extent& extent, void* out) {
  const int64_t count = extent.last - extent.first + 1;
  return storage.Read(
      static_cast<uint64_t>(extent.first * element_bytes),
      absl::MakeSpan(static_cast<uint8_t*>(out),
                     static_cast<size_t>(count * element_bytes)));
}

}  // namespace

absl::Status ReadStrided(const ByteSource& storage, const StridedView& view,
                         char* out) {
  std::vector<Dim> dims = JoinedDims(view);
  const int64_t element_bytes = view.element_bytes;
  if (dims.empty() || (dims.size() == 1 && dims[0].from == 1)) {
    return ReadElements(storage, element_bytes, ExtentOf(dims, view.offset),
                        out);
  }
  // Pieces are cut along the dimension that goes farthest in the storage.
  const size_t far = static_cast<size_t>(
      std::max_element(dims.begin(), dims.end(),
                       [](const Dim& a, const Dim& b) {
                         return std::abs(a.from) < std::abs(b.from);
                       }) -
      dims.begin());
  const Dim whole = dims[far];
  const int64_t step =
      std::max<int64_t>(1, kPieceBytes / element_bytes /
                               std::max<int64_t>(1, std::abs(whole.from)));
  std::vector<uint8_t> piece;
  for (int64_t i = 0; i < whole.size; i += step) {
    dims[far].size = std::min(step, whole.size - i);
    const int64_t begin = view.offset + i * whole.from;
    const Extent extent = ExtentOf(dims, begin);
    const int64_t count = extent.last - extent.first + 1;
    piece.resize(static_cast<size_t>(count * element_bytes));
    const absl::Status read =
        ReadElements(storage, element_bytes, extent, piece.data());
    if (!read.ok()) return read;
    CopyPiece(dims, element_bytes,
              piece.data() + (begin - extent.first) * element_bytes,
              out + i * whole.to * element_bytes);
  }
  return absl::OkStatus();
}

}  // namespace txl
