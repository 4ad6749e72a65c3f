#include "model/convert/container/stored_tensor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/convert/container/strided_copy.h"

namespace txl {
namespace {

constexpr size_t kMaxDims = 8;
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
  if (shape.size() > kMaxDims) {
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

StoredTensor SplitLast(const StoredTensor& t, int64_t outer, int64_t inner) {
  StoredTensor view = t;
  view.shape.back() = outer;
  view.strides.back() = t.strides.back() * inner;
  view.shape.push_back(inner);
  view.strides.push_back(t.strides.back());
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

}  // namespace txl
