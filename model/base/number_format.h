#pragma once

// How weights and memories are stored, by the names that flags, reports and
// state images use. Arithmetic is float32 but for integer products.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace txl {

enum class NumberFormat { kF32, kBF16, kF16, kInt8, kInt4 };

// Bits of one number; the scales of kInt8 and kInt4 come on top.
constexpr int64_t NumberBits(NumberFormat format) {
  switch (format) {
    case NumberFormat::kF32:
      return 32;
    case NumberFormat::kInt8:
      return 8;
    case NumberFormat::kInt4:
      return 4;
    default:
      return 16;
  }
}
// Bytes of one number. Not of kInt4, two of which share one.
constexpr int64_t NumberBytes(NumberFormat format) {
  return NumberBits(format) / 8;
}
// Whole numbers times a scale, which can have Products::kInteger.
constexpr bool AreWholeNumbers(NumberFormat format) {
  return format == NumberFormat::kInt8 || format == NumberFormat::kInt4;
}

struct NamedFormat {
  const char* name;
  NumberFormat format;
};

inline constexpr std::array<NamedFormat, 5> kWeightFormats = {
    {{"f32", NumberFormat::kF32},
     {"bf16", NumberFormat::kBF16},
     {"f16", NumberFormat::kF16},
     {"int8", NumberFormat::kInt8},
     {"int4", NumberFormat::kInt4}}};
// Formats of stored and of derived rows: those but the last.
inline constexpr absl::Span<const NamedFormat> kRowFormats =
    absl::MakeConstSpan(kWeightFormats.data(), kWeightFormats.size() - 1);

// How int8 and int4 weights are multiplied: by rows as they are, sums in
// float32
// ("float"), or by rows rounded to 8 bits, sums exact ("int8").
enum class Products { kFloat, kInteger };

std::vector<std::string> ProductNames();
// Nothing: no such name.
std::optional<Products> FindProducts(absl::string_view name);

const char* FormatName(NumberFormat format);
// Nothing: no such name among `formats`.
std::optional<NumberFormat> FindFormat(absl::Span<const NamedFormat> formats,
                                       absl::string_view name);
std::vector<std::string> FormatNames(absl::Span<const NamedFormat> formats);
// "f32, bf16, f16"
std::string JoinNames(absl::Span<const NamedFormat> formats);

}  // namespace txl
