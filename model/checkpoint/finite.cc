#include "model/checkpoint/finite.h"

#include <cstring>

namespace txl {
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
