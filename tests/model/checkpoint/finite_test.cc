#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "model/checkpoint/safetensors.h"

namespace txl {
namespace {

template <typename T>
std::vector<uint8_t> Bytes(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(AllFinite, NothingIsFinite) {
  EXPECT_TRUE(AllFinite(DType::kF32, {}));
  EXPECT_TRUE(AllFinite(DType::kF64, {}));
}

TEST(AllFinite, ExtremeNumbersOfF32AreFinite) {
  using Limits = std::numeric_limits<float>;
  EXPECT_TRUE(AllFinite(DType::kF32,
                        Bytes<float>({Limits::max(), Limits::lowest(), -0.0f,
                                      Limits::denorm_min(), 1.0f})));
}

// Sums of them overflow; each is finite all the same.
TEST(AllFinite, ExtremeNumbersOfF64AreFinite) {
  using Limits = std::numeric_limits<double>;
  EXPECT_TRUE(AllFinite(
      DType::kF64, Bytes<double>({Limits::max(), Limits::max(),
                                  Limits::lowest(), Limits::denorm_min()})));
}

TEST(AllFinite, OneBadNumberAnywhereIsFound) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float bad : {kInf, -kInf, std::nanf(""), -std::nanf("")}) {
    for (size_t where : {0, 1, 499, 998}) {
      std::vector<float> values(999, 1.5f);
      values[where] = bad;
      EXPECT_FALSE(AllFinite(DType::kF32, Bytes(values)))
          << bad << " at " << where;
      std::vector<double> wide(values.begin(), values.end());
      EXPECT_FALSE(AllFinite(DType::kF64, Bytes(wide)))
          << bad << " at " << where;
    }
  }
}

// Bit patterns of IEEE 754 binary16 and of bfloat16.
TEST(AllFinite, KnowsTheTwoKindsOfHalf) {
  EXPECT_TRUE(AllFinite(DType::kF16, Bytes<uint16_t>({0x7bff, 0xfbff, 1})));
  EXPECT_FALSE(AllFinite(DType::kF16, Bytes<uint16_t>({0, 0x7c00})));
  EXPECT_FALSE(AllFinite(DType::kF16, Bytes<uint16_t>({0, 0xfe00})));
  EXPECT_TRUE(AllFinite(DType::kBF16, Bytes<uint16_t>({0x7f7f, 0xff7f, 1})));
  EXPECT_FALSE(AllFinite(DType::kBF16, Bytes<uint16_t>({0, 0x7f80})));
  EXPECT_FALSE(AllFinite(DType::kBF16, Bytes<uint16_t>({0, 0xffc0})));
  // 0x7c00 is infinity as a half and an ordinary number as a bfloat16.
  EXPECT_TRUE(AllFinite(DType::kBF16, Bytes<uint16_t>({0x7c00})));
}

TEST(AllFinite, IntegersAlwaysAre) {
  for (const DType dtype : {DType::kI64, DType::kI32, DType::kU8}) {
    EXPECT_TRUE(AllFinite(dtype, Bytes<uint64_t>({~uint64_t{0}})));
  }
}

TEST(AllFinite, TheBytesNeedNoAlignment) {
  std::vector<uint8_t> bytes = Bytes<float>({1, std::nanf(""), 2});
  bytes.insert(bytes.begin(), 0);
  EXPECT_FALSE(AllFinite(DType::kF32, absl::MakeConstSpan(bytes).subspan(1)));
}

}  // namespace
}  // namespace txl
