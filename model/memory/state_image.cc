#include "model/memory/state_image.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

// Guards against accidents, not against forgery. A word is mixed in by a
// product of 128 bits whose halves are folded, so that what one damaged word
// changes depends on all words before it and no pattern of damage cancels
// itself.
class Checksum {
 public:
  void Add(const void* data, size_t bytes) {
    const auto* p = static_cast<const uint8_t*>(data);
    for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, p, sizeof(word));
      Mix(word);
      p += sizeof(word);
    }
    for (size_t i = 0; i < bytes; ++i) Mix(p[i]);
  }
  void Add(int64_t number) { Add(&number, sizeof(number)); }
  void Add(const std::string& text) {
    Add(static_cast<int64_t>(text.size()));
    Add(text.data(), text.size());
  }
  uint64_t value() const { return value_; }

 private:
  void Mix(uint64_t word) {
    // Digits of pi: any odd number without a pattern does.
    const absl::uint128 product =
        absl::uint128(value_ ^ word) * uint64_t{0x9216d5d98979fb1b};
    value_ = absl::Uint128High64(product) ^ absl::Uint128Low64(product);
  }

  uint64_t value_ = 0x243f6a8885a308d3;
};

uint64_t ChecksumOf(const StateImage& image) {
  Checksum sum;
  sum.Add(static_cast<int64_t>(image.format_version));
  sum.Add(image.identity.fingerprint);
  sum.Add(image.identity.window);
  sum.Add(image.identity.mem_len);
  sum.Add(image.identity.d_model);
  sum.Add(image.identity.n_layer);
  sum.Add(static_cast<int64_t>(image.identity.zero_start));
  sum.Add(image.identity.row_dtype);
  sum.Add(image.identity.kernel);
  sum.Add(image.position);
  sum.Add(image.rows);
  sum.Add(static_cast<int64_t>(image.data.size()));
  sum.Add(image.data.data(), image.data.size());
  return sum.value();
}

// Bytes of a row; 0: a dtype that no step keeps rows in.
int64_t RowBytes(absl::string_view dtype, int64_t d_model) {
  if (dtype == "f64") return 8 * d_model;
  if (dtype == "f32") return 4 * d_model;
  if (dtype == "int8") return d_model + int64_t{sizeof(float)};
  return dtype == "f16" || dtype == "bf16" ? 2 * d_model : 0;
}

// Whether the rows are as many as the position allows and `data` holds them.
// The identity is that of the server, so its sizes are sound.
bool SizesFit(const StateImage& image) {
  const StateIdentity& from = image.identity;
  const int64_t most = from.zero_start || image.position > from.mem_len
                           ? from.mem_len
                           : image.position;
  if (image.position < 0 || image.rows < 0 || image.rows > most) return false;
  const int64_t row_bytes =
      from.n_layer * RowBytes(from.row_dtype, from.d_model);
  return image.Bytes() == image.rows * row_bytes;
}

template <typename T>
absl::Status CheckEqual(absl::string_view field, const T& image,
                        const T& served) {
  if (image == served) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "state image: ", field, " is ", image, ", this server has ", served));
}

}  // namespace

void StateImage::Seal() { checksum = ChecksumOf(*this); }

absl::Status CheckStateImage(const StateImage& image,
                             const StateIdentity& identity) {
  const StateIdentity& from = image.identity;
  const absl::Status checks[] = {
      CheckEqual("format_version", image.format_version,
                 StateImage::kFormatVersion),
      CheckEqual("fingerprint", from.fingerprint, identity.fingerprint),
      CheckEqual("window", from.window, identity.window),
      CheckEqual("mem_len", from.mem_len, identity.mem_len),
      CheckEqual("d_model", from.d_model, identity.d_model),
      CheckEqual("n_layer", from.n_layer, identity.n_layer),
      CheckEqual("zero_start", from.zero_start, identity.zero_start),
      CheckEqual("row_dtype", from.row_dtype, identity.row_dtype),
      CheckEqual("kernel", from.kernel, identity.kernel)};
  for (const absl::Status& check : checks) {
    if (!check.ok()) return check;
  }
  if (!SizesFit(image)) {
    return absl::DataLossError(absl::StrCat(
        "state image: ", image.rows, " rows at position ", image.position,
        " contradict each other or the ", image.Bytes(), " bytes of data"));
  }
  if (image.checksum != ChecksumOf(image)) {
    return absl::DataLossError("state image: checksum does not match");
  }
  return absl::OkStatus();
}

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
void WidenAll(const uint8_t* data, absl::Span<float> numbers,
              const Widen& widen) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, data + i * sizeof(Stored), sizeof(Stored));
    numbers[i] = widen(stored);
  }
}

// Behind a row's numbers stands what each of them is multiplied by.
void WidenScaled(const uint8_t* data, size_t width, absl::Span<float> numbers) {
  for (size_t at = 0; at < numbers.size(); at += width) {
    float scale;
    std::memcpy(&scale, data + width, sizeof(scale));
    for (size_t k = 0; k < width; ++k) {
      numbers[at + k] = scale * static_cast<int8_t>(data[k]);
    }
    data += width + sizeof(scale);
  }
}

}  // namespace

absl::StatusOr<LargeVector<float>> WidenRows(const StateImage& image) {
  const int64_t layer_numbers = image.rows * image.identity.d_model;
  LargeVector<float> numbers(image.identity.n_layer * layer_numbers);
  for (int64_t layer = 0; layer < image.identity.n_layer; ++layer) {
    TXL_RETURN_IF_ERROR(WidenLayer(
        image, layer,
        absl::MakeSpan(numbers).subspan(layer * layer_numbers, layer_numbers)));
  }
  return numbers;
}

absl::Status WidenLayer(const StateImage& image, int64_t layer,
                        absl::Span<float> numbers) {
  const std::string& dtype = image.identity.row_dtype;
  const int64_t d_model = image.identity.d_model;
  const int64_t layer_bytes = image.rows * RowBytes(dtype, d_model);
  if (RowBytes(dtype, d_model) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("state image: rows are stored as ", dtype));
  }
  if (image.Bytes() != image.identity.n_layer * layer_bytes ||
      std::ssize(numbers) != image.rows * d_model) {
    return absl::InvalidArgumentError(
        absl::StrCat("state image: ", image.Bytes(), " bytes in ", image.rows,
                     " rows of ", image.identity.n_layer, " layers"));
  }
  const uint8_t* const data = image.data.data() + layer * layer_bytes;
  if (dtype == "f32") {
    std::copy_n(data, layer_bytes, reinterpret_cast<uint8_t*>(numbers.data()));
  } else if (dtype == "f16") {
    WidenAll<uint16_t>(data, numbers, WidenHalf);
  } else if (dtype == "bf16") {
    WidenAll<uint16_t>(data, numbers, WidenBrain);
  } else if (dtype == "int8") {
    WidenScaled(data, static_cast<size_t>(d_model), numbers);
  } else {
    WidenAll<double>(data, numbers,
                     [](double x) { return static_cast<float>(x); });
  }
  return absl::OkStatus();
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
