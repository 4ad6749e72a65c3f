#include "model/base/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace txl {
namespace {

uint32_t Crc(const std::string& bytes) {
  return ExtendCrc32c(0, bytes.data(), bytes.size());
}

// RFC 3720, appendix B.4, and the check value of the catalogues.
TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(Crc("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising.push_back(c);
  EXPECT_EQ(Crc(rising), 0x46dd794eu);
  EXPECT_EQ(Crc(""), 0u);
}

TEST(Crc32c, ContinuesWhereItStopped) {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const uint32_t first = ExtendCrc32c(0, text.data(), cut);
    EXPECT_EQ(ExtendCrc32c(first, text.data() + cut, text.size() - cut),
              Crc(text));
  }
}

TEST(Crc32c, MaskingRotatesBy15AndAdds) {
  EXPECT_EQ(MaskCrc32c(0), 0xa282ead8u);
  // The lowest bit moves to bit 17.
  EXPECT_EQ(MaskCrc32c(1), 0xa282ead8u + (1u << 17));
  for (const uint32_t crc : {0u, 1u, 0xe3069283u, 0xffffffffu}) {
    EXPECT_EQ(UnmaskCrc32c(MaskCrc32c(crc)), crc);
    EXPECT_NE(MaskCrc32c(crc), crc);
  }
}

}  // namespace
}  // namespace txl
