#include "server/store/redis/sealed_value.h"

#include <gtest/gtest.h>

#include <string>

namespace txl {
namespace {

TEST(SealedValue, ComesBack) {
  for (const std::string& value :
       {std::string(), std::string("x"), std::string("a\0b", 3)}) {
    EXPECT_EQ(Unsealed(Sealed(value)), value);
    EXPECT_EQ(Unsealed(Sealed(value, "7"), "7"), value);
  }
}

TEST(SealedValue, HasACrc32cBehindIt) {
  // RFC 3720, B.4: 32 bytes of zeros have aa 36 91 8a.
  const std::string zeros(32, '\0');
  EXPECT_EQ(Sealed(zeros), zeros + "\xaa\x36\x91\x8a");
  EXPECT_EQ(Sealed(zeros.substr(5), zeros.substr(0, 5)).substr(27),
            "\xaa\x36\x91\x8a");
}

TEST(SealedValue, EveryFlippedBitAndEveryCutIsNoticed) {
  const std::string sealed = Sealed("a value", "12");
  for (size_t i = 0; i < sealed.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = sealed;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      EXPECT_FALSE(Unsealed(damaged, "12").has_value()) << i;
    }
    EXPECT_FALSE(Unsealed(sealed.substr(0, i), "12").has_value()) << i;
  }
  EXPECT_FALSE(Unsealed(sealed, "13").has_value());
  EXPECT_FALSE(Unsealed(sealed).has_value());
}

TEST(IdChain, IsItsTextAndNothingElseIs) {
  const std::string text = NextChain("born", "create", "123456789");
  // The CRC-32C of "123456789" is e3069283.
  EXPECT_EQ(text.substr(32), "-e3069283");
  const auto chain = IdChain::Of(text);
  ASSERT_TRUE(chain.has_value());
  EXPECT_EQ(chain->ids_crc, 0xe3069283);
  EXPECT_EQ(chain->text(), text);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = 'x';
    EXPECT_FALSE(IdChain::Of(other).has_value()) << i;
    EXPECT_FALSE(IdChain::Of(text.substr(0, i)).has_value()) << i;
  }
  EXPECT_FALSE(IdChain::Of(text + "0").has_value());
}

TEST(IdChain, GoesOnWithTheChecksumOfAllIds) {
  const std::string whole = NextChain("born", "create", "123456789");
  const std::string first = NextChain("born", "create", "1234");
  const std::string second = NextChain(first, "append", "56789");
  EXPECT_EQ(second.substr(32), whole.substr(32));
  EXPECT_NE(second, whole);  // another history
  EXPECT_NE(second, NextChain(first, "end", "56789"));
  EXPECT_EQ(NextChain(second, "end", "").substr(32), whole.substr(32));
}

TEST(IdChain, OfTheSameIdsLeftTwiceIsNotTheSame) {
  const std::string before = NextChain("born", "create", "123456789");
  const std::string cut = ChainOf(before, "rewind", "nonce", "1234");
  EXPECT_EQ(cut.substr(32), NextChain("", "", "1234").substr(32));
  EXPECT_NE(cut, ChainOf(before, "rewind", "other nonce", "1234"));
}

}  // namespace
}  // namespace txl
