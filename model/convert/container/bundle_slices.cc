#include "model/convert/container/bundle_slices.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace txl {
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
