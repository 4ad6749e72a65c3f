#include "model/memory/image_rows.h"

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

// IEEE 754 binary16.
float WidenHalf(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinite or no number
    return std::bit_cast<float>(sign | 0x7f800000u |
                                ((magnitude & 0x3ffu) << 13));
  }
  // An exponent of 8 bits has another bias; the product takes subnormal numbers
  // along.
  const float shifted = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return sign == 0 ? shifted : -shifted;
}

float WidenBrain(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

template <typename Stored, typename Widen>
LargeVector<float> WidenAll(const LargeVector<uint8_t>& data,
                            const Widen& widen) {
  LargeVector<float> numbers(data.size() / sizeof(Stored));
  for (size_t i = 0; i < numbers.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, data.data() + i * sizeof(Stored), sizeof(Stored));
    numbers[i] = widen(stored);
  }
  return numbers;
}

// Behind a row's numbers stands what each of them is multiplied by.
LargeVector<float> WidenScaled(const LargeVector<uint8_t>& data, size_t width) {
  const size_t row_bytes = width + sizeof(float);
  LargeVector<float> numbers;
  numbers.reserve(data.size());
  for (size_t at = 0; at + row_bytes <= data.size(); at += row_bytes) {
    float scale;
    std::memcpy(&scale, data.data() + at + width, sizeof(scale));
    for (size_t k = 0; k < width; ++k) {
      numbers.push_back(scale * static_cast<int8_t>(data[at + k]));
    }
  }
  return numbers;
}

}  // namespace

absl::StatusOr<LargeVector<float>> WidenRows(const StateImage& image) {
  const StateIdentity& identity = image.identity;
  LargeVector<float> numbers;
  if (identity.row_dtype == "f32") {
    numbers = WidenAll<float>(image.data, [](float x) { return x; });
  } else if (identity.row_dtype == "f16") {
    numbers = WidenAll<uint16_t>(image.data, WidenHalf);
  } else if (identity.row_dtype == "bf16") {
    numbers = WidenAll<uint16_t>(image.data, WidenBrain);
  } else if (identity.row_dtype == "int8") {
    numbers = WidenScaled(image.data, static_cast<size_t>(identity.d_model));
  } else if (identity.row_dtype == "f64") {
    numbers = WidenAll<double>(image.data,
                               [](double x) { return static_cast<float>(x); });
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("state image: rows are stored as ", identity.row_dtype));
  }
  const int64_t count = identity.n_layer * image.rows * identity.d_model;
  if (count == static_cast<int64_t>(numbers.size())) return numbers;
  return absl::InvalidArgumentError(
      absl::StrCat("state image: ", numbers.size(), " numbers in ", image.rows,
                   " rows of ", identity.n_layer, " layers"));
}

absl::Span<const uint8_t> RowOf(const StateImage& image, int64_t layer,
                                int64_t row) {
  const int64_t all = image.identity.n_layer * image.rows;
  if (all == 0) return {};
  const int64_t bytes = image.Bytes() / all;
  return absl::MakeSpan(image.data)
      .subspan((layer * image.rows + row) * bytes, bytes);
}

StateImage WithRows(const StateImage& image, absl::Span<const int64_t> rows) {
  StateImage some;
  some.format_version = image.format_version;
  some.identity = image.identity;
  some.position = image.position;
  some.rows = static_cast<int64_t>(rows.size());
  for (int64_t layer = 0; layer < image.identity.n_layer; ++layer) {
    for (const int64_t row : rows) {
      const absl::Span<const uint8_t> bytes = RowOf(image, layer, row);
      some.data.insert(some.data.end(), bytes.begin(), bytes.end());
    }
  }
  return some;
}

}  // namespace txl
